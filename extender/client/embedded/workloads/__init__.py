"""The pods that controllers make of their objects, since none runs beside the embedded API: a file for each controller.

`load` asks `kinds`. What a workload asks for is not trusted: every number is bounded, and a wrong field is named with its place.
"""
