"""Trains a small net and prints each loss to the last bit. Where the library is
preloaded, it looks where the tensors are."""

import sys

import torch

import tieralloc_shim as t

torch.manual_seed(1)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
inputs, targets = torch.randn(4096, 64), torch.randn(4096, 8)  # 1 MiB, 128 KiB
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

if "preloaded" in sys.argv:
    t.enable()  # fails without the library
    wrong = [(what, tier, t.tier_of(tensor)) for what, tensor, tier in (
        ("inputs", inputs, "slow"), ("a view of the inputs", inputs[9:], "slow"), ("targets", targets, "fast"),
        ("weights", net[0].weight, "fast"), ("their gradient", net[0].weight.grad, "fast"),
        ("what Adam keeps", optimizer.state[net[0].weight]["exp_avg"], "fast"),
        ("1 MiB of floats", torch.zeros(1 << 18), "slow"), ("four bytes less", torch.zeros((1 << 18) - 1), "fast"),
    ) if t.tier_of(tensor) != tier]
    t.disable()
    sys.exit(f"not in its tier (tensor, wanted, found): {wrong}" if wrong else 0)
