"""Other tools' views of problems and mappings: MAESTRO's directives, ZigZag's operand loops, Timeloop's statistics."""
