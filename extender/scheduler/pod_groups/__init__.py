"""The status of PodGroups, as scheduler-plugins' controller keeps it and more: what their pods show, told in one patch.

scheduler-plugins: pkg/controllers/podgroup_controller.go
"""
