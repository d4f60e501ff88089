"""Slices of a gang, each in one domain, and members in the order of their ranks: pure, as all of the planner.

`parts` makes slices of what is asked for, `layout` chooses a domain for each, and `ranks` gives the places found to the members.
`node_order` and `slice_count` are for what makes room for slices.
"""
