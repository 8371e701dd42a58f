"""Other tools' notations: MAESTRO's directives, ZigZag's operand loops, Timeloop's statistics."""
