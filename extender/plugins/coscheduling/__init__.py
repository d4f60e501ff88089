"""Gangs: the Coscheduling plugin and what it knows of groups. scheduler-plugins: pkg/coscheduling"""
