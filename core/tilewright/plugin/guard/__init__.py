"""The guard: every call into a plugin goes through it, and what comes back is checked.

Whatever a plugin does ends as one PluginError that names it, its distribution and what it broke; the others go on.
`Registry.make` gives only guarded plugins.
"""
