"""Guards: wrappers of plugins that check every call and every answer.

Any failure of a plugin becomes one PluginError. It names the plugin, its distribution and the
contract violation. Other plugins continue. `Registry.make` returns guarded plugins only.
"""
