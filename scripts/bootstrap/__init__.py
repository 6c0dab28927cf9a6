"""Set-up of a fresh checkout. Uses only the standard library, because no package is installed yet."""
