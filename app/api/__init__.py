"""HTTP API: routes, request and response models, error responses. The work is done in the packages below."""
