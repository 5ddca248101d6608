"""PyFlink's homes of the file formats."""
