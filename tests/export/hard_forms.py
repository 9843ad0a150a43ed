"""Sessions of which an export is easily wrong: forms of the language, and shared data. Cells by session."""

from __future__ import annotations

Cell = str | tuple[str, ...]

SYNTAX: dict[str, list[Cell]] = {
    "async def": ["xs = []", "async def add(v):\n    xs.append(v)", "await add(1)", "print(xs)"],
    "async with": [
        (
            "log = []\nclass C:\n    async def __aenter__(self): log.append('in')\n"
            "    async def __aexit__(self, *a): log.append('out')"
        ),
        "async with C():\n    pass",
        "print(log)",
    ],
    "asyncio queue": ["import asyncio\nq = asyncio.Queue()", "q.put_nowait(1)", "await q.put(2)", "print(q.qsize())"],
    "context manager with state": [
        (
            "class Stack:\n    depth = 0\n    def __enter__(self):\n        Stack.depth += 1\n"
            "    def __exit__(self, *a): pass"
        ),
        "with Stack():\n    pass",
        "print(Stack.depth)",
    ],
    "contextmanager function": [
        (
            "from contextlib import contextmanager\nlog = []\n@contextmanager\ndef step(n):\n"
            "    log.append(n)\n    yield\n    log.append(-n)"
        ),
        "with step(1):\n    pass",
        "print(log)",
    ],
    "exit stack": [
        "from contextlib import ExitStack\nlog = []\nstack = ExitStack()",
        "stack.callback(log.append, 1)",
        "stack.close()",
        "print(log)",
    ],
    "walrus in a comprehension": ["xs = [(last := i) for i in range(4)]", "print(last)"],
    "walrus in while": ["it = iter([1, 2, 0, 5])", "while (v := next(it)):\n    pass", "print(v, list(it))"],
    "match captures": [
        "cmd = ('go', 3, {'k': 4})",
        "match cmd:\n    case (str(verb), n, {'k': k, **rest}):\n        pass",
        "print(verb, n, k, rest)",
    ],
    "match star": ["match [1, 2, 3]:\n    case [first, *others]:\n        pass", "print(first, others)"],
    "match class": [
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int",
        "match P(3):\n    case P(x=px):\n        pass",
        "print(px)",
    ],
    "match as": ["match 4:\n    case 3 | 4 as four:\n        pass", "print(four)"],
    "except as": [
        "err = 'old'",
        "try:\n    1 / 0\nexcept ZeroDivisionError as err:\n    kept = str(err)",
        "print(kept, 'err' in globals())",
    ],
    "except as deletes": [
        "e = 5",
        "try:\n    int('x')\nexcept ValueError as e:\n    pass",
        "try:\n    print(e)\nexcept NameError:\n    print('gone')",
    ],
    "except star": [
        ("try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept* ValueError as g:\n    n = len(g.exceptions)"),
        "print(n)",
    ],
    "del in a loop": ["d = {i: i for i in range(4)}", "for k in list(d):\n    if k % 2:\n        del d[k]", "print(d)"],
    "del name in a loop": ["a = 1\nb = 2", "for n in [1]:\n    del a", "print('a' in globals(), b)"],
    "del then NameError": ["a = 1", "del a", "try:\n    print(a)\nexcept NameError:\n    print('gone')"],
    "del then rebind": ["a = [1]\nb = a", "del a", "a = 2", "print(a, b)"],
    "swap": ["a, b = [1], [2]", "a, b = b, a", "a.append(9)", "print(a, b)"],
    "chained assignment": ["a = b = []", "a.append(1)", "print(b)"],
    "starred": ["x, *rest = [[1], [2], [3]]", "rest[0].append(5)", "print(rest)"],
    "lambda reads global later": ["k = 1\nf = lambda: k", "k = 2", "print(f())"],
    "class global rebinding": ["k = 1\nclass A:\n    def f(self): return k\na = A()", "k = 2", "print(a.f())"],
    "redefined helper function": ["def g(): return 1\ndef f(): return g()", "def g(): return 2", "print(f())"],
    "exec with names": ["src = 'z = 3'", "exec(src)", "w = 1\nprint(z)"],
    "exec changes": ["xs = []", "exec('xs.append(1)')", "print(xs)"],
    "exec in a dict": ["ns = {}", "exec('z = 3', ns)", "print(ns['z'])"],
    "eval effect": ["xs = []", "eval('xs.append(1)')", "print(xs)"],
    "exec computed": ["names = ['p', 'q']", "for n in names:\n    exec(f'{n} = 1')", "print(p + q)"],
    "exec computed change": ["xs = []\ncode = 'xs.append(2)'", "exec(code)", "print(xs)"],
    "globals read": ["v = 5", "w = 6", "print(globals()['v'])"],
    "globals loop": ["for i in range(3):\n    globals()[f'v{i}'] = i", "print(v2)"],
    "globals change": ["xs = []", "globals()['xs'].append(3)", "print(xs)"],
    "locals read": ["aa = 4", "print(locals()['aa'])"],
    "import __main__": ["import __main__", "__main__.qv = 7", "print(qv)"],
    "sys.modules main": ["import sys", "setattr(sys.modules['__main__'], 'qv', 7)", "print(qv)"],
    "get_ipython user_ns": ["get_ipython().user_ns['qq'] = 3", "print(qq)"],
    "get_ipython run_cell": ["r = get_ipython().run_cell('qq = 3')", "print(qq)"],
    "%run": [("write_file", "helpers.py", "k = 5\n"), "%run helpers.py", "print(k)"],
    "%run -i": [("write_file", "helpers.py", "xs.append(2)\n"), "xs = [1]", "%run -i helpers.py", "print(xs)"],
    "%run after edit": [
        ("write_file", "helpers.py", "k = 5\n"),
        "%run helpers.py",
        ("write_file", "helpers.py", "k = 6\n"),
        "j = k",
        "print(k)",
    ],
    "%run line in a cell": [("write_file", "helpers.py", "k = 5\n"), "a = 1\n%run helpers.py\nb = 2", "print(k + a)"],
    "%%capture": ["xs = []", "%%capture out\nxs.append(1)\nprint('hey')", "print(xs, out.stdout)"],
    "!assign": ["names = !echo one two", "print(names[0])"],
    "ipython underscore": ["5 + 1", "y = _ + 1", "print(y)"],
    "ipython Out": ["40 + 2", "print(Out[2])"],
}
"""Forms of the language and of IPython."""

SHARED: dict[str, list[Cell]] = {
    "class attribute through an instance": ["class A:\n    items = []\na = A()", "a.items.append(1)", "print(A.items)"],
    "class attribute through another instance": [
        "class A:\n    items = []",
        "a = A()",
        "b = A()",
        "a.items.append(1)",
        "print(b.items)",
    ],
    "class attribute through type": ["class A:\n    n = 0\na = A()", "type(a).n = 4", "print(A.n)"],
    "dataclass default factory": [
        (
            "from dataclasses import dataclass, field\nshared = []\n@dataclass\nclass D:\n"
            "    xs: list = field(default_factory=lambda: shared)"
        ),
        "d = D()",
        "d.xs.append(1)",
        "print(shared)",
    ],
    "dataclass class var": [
        (
            "from dataclasses import dataclass\nfrom typing import ClassVar\n@dataclass\nclass D:\n"
            "    seen: ClassVar[list] = []\n    n: int = 0\n    def __post_init__(self):\n"
            "        D.seen.append(self.n)"
        ),
        "D(3)",
        "print(D.seen)",
    ],
    "instance counter": [
        "class A:\n    made = 0\n    def __init__(self):\n        A.made += 1",
        "a = A()",
        "b = A()",
        "print(A.made)",
    ],
    "nested list multiplied": ["row = [0]", "grid = [row] * 3", "grid[0][0] = 7", "print(row)"],
    "list plus": ["a = [[1]]\nb = [[2]]", "c = a + b", "c[0].append(5)", "print(a)"],
    "dict merge": ["a = {'k': []}", "b = a | {'z': 1}", "b['k'].append(1)", "print(a)"],
    "copy is shallow": ["a = [[1]]", "b = a.copy()", "b[0].append(2)", "print(a)"],
    "augmented list shares": ["b = [[]]\na = []", "a += b", "a[0].append(5)", "print(b)"],
    "tuple holding a list": ["xs = []", "t = (xs, 1)", "t[0].append(5)", "print(xs)"],
    "loop variable shares": ["rows = [[], []]", "for r in rows:\n    r.append(1)", "print(rows)"],
    "loop over zip shares": ["rows = [[], []]", "for i, r in zip('ab', rows):\n    r.append(i)", "print(rows)"],
    "loop over items": ["d = {'a': []}", "for k, v in d.items():\n    v.append(k)", "print(d)"],
    "memoryview": ["b = bytearray(b'abc')\nm = memoryview(b)", "m[0] = 90", "print(b)"],
    "chainmap": ["from collections import ChainMap\nbase = {}\nc = ChainMap(base)", "c['k'] = 1", "print(base)"],
    "iterator in a dict": ["d = {'it': iter('abc')}", "x = list(d['it'])", "print(list(d['it']))"],
    "iterator in an object": ["class A: pass\na = A(); a.it = iter('abc')", "x = next(a.it)", "print(list(a.it))"],
    "iterator in a function": ["it = iter('abc')\ndef take():\n    return next(it)", "x = take()", "print(take())"],
    "unpack consumes": ["it = iter('abcd')", "a, b, *c = it", "print(list(it))"],
    "in consumes": ["it = iter('abcd')", "yes = 'b' in it", "print(list(it))"],
    "tee": ["import itertools\na, b = itertools.tee(iter('xyz'))", "x = next(a)", "print(list(a), list(b))"],
    "wrapped iterator": [
        "from tqdm import tqdm\ng = iter([1, 2])\nt = tqdm(g, disable=True)",
        "for x in t: pass",
        "print(list(g))",
    ],
    "queue": ["import queue\nq = queue.Queue()", "q.put(1)", "x = q.get()", "print(q.empty())"],
    "dataloader iter": [
        (
            "class Loader:\n    def __init__(self): self.epoch = 0\n    def __iter__(self):\n"
            "        self.epoch += 1\n        return iter([1, 2])\nl = Loader()"
        ),
        "for b in l: pass",
        "n = len(list(l))",
        "print(l.epoch)",
    ],
    "cached property": [
        (
            "from functools import cached_property\nlog = []\nclass A:\n    @cached_property\n"
            "    def v(self):\n        log.append(1)\n        return 5"
        ),
        "a = A()",
        "a.v",
        "x = a.v",
        "print(log)",
    ],
    "thread": [
        "import threading\nxs = []\ndef work():\n    xs.append(1)",
        "t = threading.Thread(target=work)",
        "t.start(); t.join()",
        "print(xs)",
    ],
    "executor": [
        "from concurrent.futures import ThreadPoolExecutor\nxs = []",
        "with ThreadPoolExecutor(2) as ex:\n    fs = [ex.submit(xs.append, i) for i in range(2)]",
        "print(sorted(xs))",
    ],
    "executor map": [
        "from concurrent.futures import ThreadPoolExecutor\nxs = []\ndef put(i):\n    xs.append(i)\n    return i",
        "ex = ThreadPoolExecutor(1)\nr = list(ex.map(put, [1, 2]))",
        "print(xs)",
    ],
    "singledispatch": [
        "from functools import singledispatch\n@singledispatch\ndef show(x): return 'any'",
        "@show.register\ndef _(x: int): return 'int'",
        "print(show(3))",
    ],
    "nonlocal closures": [
        (
            "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
            "    def get():\n        return n\n    return up, get\nup, get = counter()"
        ),
        "up()",
        "z = up()",
        "print(get())",
    ],
    "two closures of one": [
        "def pair():\n    box = []\n    return box.append, lambda: list(box)\nput, get = pair()",
        "put(1)",
        "print(get())",
    ],
    "callable object passed": [
        (
            "class Acc:\n    def __init__(self): self.t = 0\n    def __call__(self, v):\n        self.t += v\n"
            "        return self.t\nacc = Acc()"
        ),
        "r = list(map(acc, [1, 2]))",
        "print(acc.t)",
    ],
    "method passed as callback": [
        (
            "class Acc:\n    def __init__(self): self.t = 0\n    def add(self, v):\n        self.t += v\n"
            "        return v\nacc = Acc()"
        ),
        "r = sorted([1, 2], key=acc.add)",
        "print(acc.t)",
    ],
    "super init registry": [
        (
            "class B:\n    all = []\n    def __init__(self): B.all.append(type(self).__name__)\nclass C(B):\n"
            "    def __init__(self):\n        super().__init__()"
        ),
        "C()",
        "print(B.all)",
    ],
    "__code__ swap": ["def f(): return 1\ndef g(): return 2", "f.__code__ = g.__code__", "print(f())"],
    "methodcaller": ["from operator import methodcaller\nxs = [1]", "methodcaller('append', 2)(xs)", "print(xs)"],
    "unbound method": ["xs = [1]", "list.append(xs, 2)", "print(xs)"],
    "reduce effect": [
        "from functools import reduce\nxs = []",
        "r = reduce(lambda a, b: a.append(b) or a, [1, 2], xs)",
        "print(xs)",
    ],
    "map with a changing function": [
        "boxes = [[], []]\ndef put(b):\n    b.append(1)",
        "r = list(map(put, boxes))",
        "print(boxes)",
    ],
    "sorted with a changing function": [
        "boxes = [[2], [1]]\ndef key(b):\n    b.append(0)\n    return b",
        "r = sorted(boxes, key=key)",
        "print(boxes)",
    ],
    "assert effect": ["xs = [1]", "assert xs.pop() == 1", "print(xs)"],
    "json object hook": [
        "import json\nseen = []",
        "r = json.loads('{\"a\": 1}', object_hook=lambda d: seen.append(d) or d)",
        "print(seen)",
    ],
    "re sub named callback": [
        "import re\nseen = []\ndef cb(m):\n    seen.append(m.group())\n    return 'b'",
        "r = re.sub('a', cb, 'aa')",
        "print(seen)",
    ],
    "observer with a function": [
        (
            "class Bus:\n    def __init__(self): self.fs = []\n    def on(self, f): self.fs.append(f)\n"
            "    def emit(self, v):\n        for f in self.fs: f(v)\nbus = Bus(); got = []\ndef note(v):\n"
            "    got.append(v)"
        ),
        "bus.on(note)",
        "bus.emit(4)",
        "print(got)",
    ],
    "numpy ufunc at": ["import numpy as np\na = np.zeros(3)", "np.add.at(a, [0, 0], 1)", "print(a)"],
    "np nan_to_num in place": [
        "import numpy as np\na = np.array([np.nan])",
        "b = np.nan_to_num(a, copy=False)",
        "print(a)",
    ],
    "df apply effect": [
        "import pandas as pd\nseen = []\ndf = pd.DataFrame({'a': [1, 2]})",
        "out = df.a.apply(seen.append)",
        "print(seen)",
    ],
    "apply with a row changer": [
        "import pandas as pd\ndf = pd.DataFrame({'a': [[], []]})\ndef put(v):\n    v.append(1)",
        "r = df.a.map(put)",
        "print(df.a.tolist())",
    ],
    "figure and axes": [
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()",
        "ax.plot([1, 2])",
        "print(len(fig.axes[0].lines))",
    ],
    "df plot on ax": [
        ("import pandas as pd, matplotlib.pyplot as plt\ndf = pd.DataFrame({'a': [1, 2]})\nfig, ax = plt.subplots()"),
        "x = df.plot(ax=ax)",
        "print(len(ax.lines))",
    ],
    "object stores object": [
        "class N:\n    def __init__(self, p=None): self.p = p\nroot = N()\nkid = N(root)",
        "kid.p.v = 3",
        "print(root.v)",
    ],
    "object method through getattr": [
        "class A:\n    def __init__(self): self.n = 0\n    def up(self): self.n += 1\na = A()",
        "getattr(a, 'up')()",
        "print(a.n)",
    ],
}
"""Data that is changed through another name, or by being used."""
