"""Few cases for truths about many factors, where the full product would say the same again and again."""

from itertools import combinations, product


def in_turn(values, *levels, start=0):
    """Every value with one combination of the levels, each in turn, so that several values meet each combination.

    Truths that start at different combinations meet, together, every value in every combination.
    """
    several = list(product(*levels))
    return [(value, *several[(start + at) % len(several)]) for at, value in enumerate(values)]


def every_pair(*factors):
    """Combinations of one level of each factor, in which any two levels of two factors meet at least once."""
    left = {
        (a, i, b, j)
        for (a, one), (b, other) in combinations(enumerate(factors), 2)
        for i in range(len(one))
        for j in range(len(other))
    }
    places = list(product(*(range(len(factor)) for factor in factors)))
    found = []
    while left:
        pairs = [{(a, i, b, j) for (a, i), (b, j) in combinations(enumerate(place), 2)} for place in places]
        best = max(range(len(places)), key=lambda at: len(pairs[at] & left))
        left -= pairs[best]
        found.append(tuple(factor[i] for factor, i in zip(factors, places[best], strict=True)))
    return found
