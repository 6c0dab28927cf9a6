"""Mind2Web: multiple-choice questions about page elements, scored like the published evaluation (MindAct)."""
