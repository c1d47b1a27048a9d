import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_and_a_known_state():
    torch.set_num_threads(1)
    torch.manual_seed(0)
