"""What may still be bought, and how fast machines may join.

Limits, quotas and rests are in `budget`; budgets of money in `standings` (`spending` is their rule, `purses`
holds users' and groups' against what is bought); `pace` says how fast machines may join.
"""
