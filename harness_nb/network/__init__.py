"""The way out of a sandbox for tool code, where a person has allowed some hosts: a proxy that opens no others.

``proxy`` answers clients, ``requests`` reads what they ask for, ``tunnels`` looks at what a tunnel begins with,
``usage`` counts. ``kernel.network`` starts it with the sandbox of a kernel. What may be reached is judged by
``policy.hosts`` and ``policy.addresses``.
"""

from harness_nb.network.proxy import Proxy
from harness_nb.network.usage import Usage

__all__ = ["Proxy", "Usage"]
