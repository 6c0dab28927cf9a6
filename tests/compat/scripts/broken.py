"""Raises: its own bug."""


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    return {"final_score": 1 / len(answer.split("|")[1:])}
