"""Sunstone (ISPASS 2023; thesis of C. Ng, UBC): orders by reuse, tiles that fill memories, unrollings that fill arrays."""
