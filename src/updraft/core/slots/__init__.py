"""What a slot would look like: kinds, ads, and the variants of a class that a job's terms ask for.

In come offers and real ads; out come ads to match against. Read `catalogue` first.
"""
