"""GPU generations as data, one YAML file each, and how a policy becomes a NodeSpec."""

from nodeprep.profiles.catalog import load_profile, profile_ids
from nodeprep.profiles.resolving import resolve, select_profile
from nodeprep.profiles.settings import (
    SiteSettings,
    load_settings_file,
    settings_from_text,
    settings_from_variables,
)

__all__ = [
    "SiteSettings",
    "load_profile",
    "load_settings_file",
    "profile_ids",
    "resolve",
    "select_profile",
    "settings_from_text",
    "settings_from_variables",
]
