/* As much of NVIDIA's libnvidia-ml.so.1 as the real nvidia-ml-py needs to tell power, persistence and PCIe
   link of one GPU, which has what it should have. GPU is its address. */
#include <stddef.h>

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

static void copy(char *to, const char *from) { while ((*to++ = *from++)) ; }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "not in the stand-in"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = NULL; return index ? 2 : 0; }

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out)
{
    static const struct pci none;
    (void)handle;
    *out = none;
    copy(out->bus_id, "0000" GPU);
    out->id = 0x0d938086;
    return 0;
}

int nvmlDeviceGetUUID(void *handle, char *out, unsigned size)
{
    (void)handle;
    if (size < sizeof "GPU-0")
        return 7;
    copy(out, "GPU-0");
    return 0;
}

#define NUMBER(name, value) int name(void *handle, unsigned *out) { (void)handle; *out = value; return 0; }
NUMBER(nvmlDeviceGetPersistenceMode, 1)
NUMBER(nvmlDeviceGetPowerManagementLimit, 700000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)

int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *least, unsigned *most)
{
    (void)handle;
    *least = 200000;
    *most = 700000;
    return 0;
}
