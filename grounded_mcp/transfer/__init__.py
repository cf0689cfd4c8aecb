"""Moving a memory: out into a file, in from one, and from one store into another.

Knows stores by what ``stores.portable`` asks of them, and nothing about engines, models or faces.
"""
