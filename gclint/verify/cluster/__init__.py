"""Runs workers on the nodes of a Ray cluster: each task of Ray starts one for one class.

The driver of the cluster is a program of its own, since Ray takes over the signals and the output of its
process, and ends it when the cluster is lost.
"""
