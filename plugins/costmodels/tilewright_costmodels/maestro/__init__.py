"""MAESTRO's analysis, reimplemented: data-centric directives, phases, and the columns of its CSV."""
