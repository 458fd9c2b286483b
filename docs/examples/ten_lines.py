from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

embedding, block, head = torch.nn.Embedding(4, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
hidden_states = embedding(torch.tensor([0, 1]))
hidden_states = checkpoint(partial(block, input=hidden_states), use_reentrant=True)  # by keyword
head(hidden_states).sum().backward()
print("head:", head.weight.grad is not None)
print("block:", block.weight.grad is not None)
print("embedding:", embedding.weight.grad is not None)
