"""Gang scheduling for the stock kube-scheduler: an HTTP extender and the framework mirror behind it.

Rooms, from the outside in: cli, server, simulation, scheduler, profile, plugins, backend,
framework, client, config, metrics, api. A room imports only from the rooms after it.
"""
