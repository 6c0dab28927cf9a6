"""Verification of rollouts by the resources server, read by the simple agent of NeMo Gym. Prints its responses."""

import json
import sys
from unittest.mock import MagicMock

from fastapi.testclient import TestClient
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseOutputMessage, NeMoGymResponseOutputText
from nemo_gym.server_utils import ServerClient
from responses_api_agents.simple_agent.app import SimpleAgentVerifyRequest, SimpleAgentVerifyResponse

from examples.trainers.nemo_gym import AssayConfig, AssayResourcesServer

given = json.loads(sys.argv[1])
config = AssayConfig(host="127.0.0.1", port=8080, entrypoint="app.py", name="assay", assay_url=given["url"])
server = AssayResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))


def request(text):
    content = [NeMoGymResponseOutputText(annotations=[], text=text, type="output_text")]
    message = NeMoGymResponseOutputMessage(
        id="message", content=content, role="assistant", status="completed", type="message"
    )
    response = NeMoGymResponse(
        id="response",
        created_at=0.0,
        model="policy",
        object="response",
        output=[message],
        parallel_tool_calls=False,
        tool_choice="none",
        tools=[],
    )
    body = {"responses_create_params": {"input": "When?"}, "response": response.model_dump(), "rubric": given["rubric"]}
    return SimpleAgentVerifyRequest.model_validate(body).model_dump()


found = {}
with TestClient(server.setup_webserver()) as agent:
    for name, text in given["answers"].items():
        reply = agent.post("/verify", json=request(text))
        reply.raise_for_status()
        found[name] = SimpleAgentVerifyResponse.model_validate(reply.json()).model_dump(exclude={"response"})
print(json.dumps(found))
