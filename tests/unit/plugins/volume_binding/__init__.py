"""Tests of extender.plugins.volume_binding."""
