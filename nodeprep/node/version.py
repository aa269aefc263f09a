"""The version of the node code; a contract test keeps it equal to the package's."""

VERSION = "0.1.0"
