"""Tasks as data: a YAML file that compiles to a native judge. Nothing in the file is executed."""
