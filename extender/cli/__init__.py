"""The commands of `gang-extender`, a file each: arguments in, exit codes out."""
