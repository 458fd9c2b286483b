"""Workers on the nodes of a Ray cluster, each started for one class by a task of Ray.

What drives the cluster is a program of its own: Ray takes over the signals and the output of its process, and
ends it when the cluster is lost.
"""
