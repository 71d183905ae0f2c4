# Trains a small model on batches of many lengths: tensors and graphs of all sizes, made and dropped.
import sys
import torch
torch.manual_seed(7)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.LayerNorm(256),
                            torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())
seen = 0
for step in range(int(sys.argv[1])):
    for n in (3, 40, 500, 2000 + 13 * step):
        x = torch.randn(n, 64)
        loss = torch.nn.functional.cross_entropy(model(x), (x[:, 0] * 4).long().clamp(0, 7))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        parts = [p * 2 for p in x.split(7)]
        seen += torch.cat(parts).shape[0] + sum(len(p) for p in parts)
print(seen, loss.isfinite().item())
