"""Text that people read: the console, escapes for files, and names made safe to print."""
