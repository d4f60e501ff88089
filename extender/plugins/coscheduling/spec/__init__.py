"""What the owner of a gang asks for: labels, annotations and PodGroups, parsed once into frozen values.

Pure, and imports nothing else of coscheduling. `state` keeps what comes out; nothing further in reads an object's keys itself.
"""
