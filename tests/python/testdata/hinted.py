"""PyTorch tensors lie where the thread's hint wants them; large ones move in place."""

import unittest

import torch

import tieralloc_shim as t

t.enable()


class Tensors(unittest.TestCase):
    def test_tiers(self):
        for word, tier in ("hot", "fast"), ("warm", "normal"), ("cold", "slow"):
            with t.hint(word):
                made = [torch.zeros(10**6), torch.randn(100), torch.arange(9), torch.ones(300, 300).t()]
            for tensor in made:
                self.assertEqual((t.tier_of(tensor), t.tier_of(tensor[1:])), (tier, tier), tensor.shape)

    def test_move(self):
        tensor = torch.arange(10**6)
        address = tensor.data_ptr()
        self.assertEqual(t.move(tensor, "slow"), address)
        self.assertEqual((t.tier_of(tensor), tensor.data_ptr(), int(tensor.sum())), ("slow", address, 499999500000))


unittest.main()
