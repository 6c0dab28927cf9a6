"""Groups in groups, gates at every level, scores read on the way, statuses set by hand."""

from mind2web2 import AggregationStrategy, Evaluator


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    e = Evaluator()
    root = e.initialize(
        "nested", AggregationStrategy.SEQUENTIAL, agent_name, answer_name, client=client, answer=answer,
        global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model,
    )  # fmt: skip
    plan = e.add_parallel("plan", "The plan")
    days = []
    for number in (1, 2):
        day = e.add_sequential(f"day_{number}", f"Day {number}", plan)
        days.append(day)
        stay = e.add_parallel(f"stay_{number}", "Where to stay", day, critical=True)
        hotel = e.add_leaf(f"hotel_{number}", "The hotel", stay, critical=True)
        room = e.add_leaf(f"room_{number}", "The room", stay, critical=True)
        visit = e.add_parallel(f"visit_{number}", "What to see", day)
        sights = [e.add_leaf(f"sight_{number}", "A sight", visit) for _ in range(3)]
        await e.verify(f"Hotel {number} exists", hotel)
        await e.verify(f"Room {number} is free", room)
        for place, sight in enumerate(sights):
            await e.verify(f"Sight {number}.{place} is open", sight)
    best = max(day.compute_score() for day in days)
    e.add_custom_info({"best_day": round(best, 4), "first_day": round(days[0].aggregated_score, 4)}, "days")

    summing_up = e.add_leaf("summing_up", "The answer sums up", root)
    summing_up.score, summing_up.status = 1.0, "passed"
    assert root.compute_score(mutate=True) == e.score()
    return e.get_summary()
