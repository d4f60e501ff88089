"""Plugins, named as kube-scheduler names them; `registry` maps names to factories."""
