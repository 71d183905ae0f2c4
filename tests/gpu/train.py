"""Trains a small transformer for 30 steps from a fixed seed and prints the loss of each,
exactly: they must not depend on who serves the memory. Usage:

    train.py eager|side|graph [pluggable]

    eager      sequences of changing length
    side       the same, with batches prepared, and a term of the loss computed, on a side stream
    graph      the step is captured as a CUDA graph and replayed

pluggable takes the memory from tieralloc, which must be preloaded and have python/ on
PYTHONPATH. Figures go to standard error."""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA starts: sums in a fixed order

import torch
from torch import nn

STEPS, BATCH, LENGTH, WIDTH, HEADS, LAYERS, CLASSES = 30, 16, 128, 256, 8, 4, 512


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5  # by hand: fused attention sums in any order
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(x + self.place[: x.shape[1]]))


def batches(changing):
    """What the host gives for each step; the same whatever the device does."""
    g = torch.Generator().manual_seed(2)
    for _ in range(STEPS):
        t = int(torch.randint(LENGTH // 4, LENGTH + 1, (1,), generator=g)) if changing else LENGTH
        x = torch.randn(BATCH, t, WIDTH, generator=g)
        yield x, (x[..., :4] > 0).long() @ torch.tensor([1, 2, 4, 8])  # can be learnt


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).view(-1, CLASSES), y.view(-1))


def eager(model, optimizer):
    for x, y in batches(True):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, x.cuda(), y.cuda())
        loss.backward()
        optimizer.step()
        yield loss.detach()


def side(model, optimizer):
    other, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for x, y in batches(True):
        with torch.cuda.stream(other):  # prepared there, used and freed here
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            for _ in range(4):
                x = x + 0.01 * torch.tanh(x)
        main.wait_stream(other)
        x.record_stream(main)
        y.record_stream(main)
        optimizer.zero_grad(set_to_none=True)
        scaled = x * 0.5  # made here, used there, and freed with that pending
        other.wait_stream(main)
        with torch.cuda.stream(other):
            extra = (scaled @ scaled.transpose(1, 2)).square().mean() * 1e-3
        scaled.record_stream(other)
        del scaled
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        main.wait_stream(other)
        extra.record_stream(main)
        yield loss.detach() + extra


def graph(model, optimizer):
    x = torch.zeros(BATCH, LENGTH, WIDTH, device="cuda")
    y = torch.zeros(BATCH, LENGTH, dtype=torch.long, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    warm = torch.cuda.Stream()  # PyTorch wants some steps on a side stream before it captures
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(warm)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step()
    for new_x, new_y in batches(False):
        x.copy_(new_x)
        y.copy_(new_y)
        noise = [torch.full((n,), float("nan"), device="cuda") for n in (1 << 10, 1 << 18, 1 << 22)]
        captured.replay()  # its memory must be nobody else's
        del noise
        yield loss.clone()


def main():
    kind, pluggable = sys.argv[1], sys.argv[2:] == ["pluggable"]
    if pluggable:
        import tieralloc_shim
        tieralloc_shim.enable_cuda("torch")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would hide what was there
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    steps = {"eager": eager, "side": side, "graph": graph}[kind]
    losses = [float(loss) for loss in list(steps(model, optimizer))]  # the device is waited for at the end only
    for loss in losses:
        print(repr(loss))
    if not all(loss == loss for loss in losses) or losses[-1] >= losses[0]:
        sys.exit("wrong: it does not learn")
    if pluggable:
        device = tieralloc_shim.stats()["devices"][0]
        if device["alloc_calls"] < STEPS * 10:
            sys.exit(f"wrong: tieralloc has served {device['alloc_calls']} requests only")
        print(f"{device['alloc_calls']} allocations, efficiency {device['efficiency']}", file=sys.stderr)


main()
