"""Kubernetes objects, and the extender's wire, as frozen values.

Each module is one API group; a struct holds only the fields that this project reads or writes.
Unknown fields are ignored on the way in, so an object that is read here must not be written back whole.
"""
