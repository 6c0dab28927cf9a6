"""What commands share: output, options, the connection to a server, tables and progress."""
