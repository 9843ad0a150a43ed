"""What there is against one call in a Python cell: processes, files, the network, code that is not shown. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from harness_nb.policy import paths
from harness_nb.policy.code.files import (
    change_folder,
    change_mode,
    expand_user,
    link_file,
    move_file,
    open_file,
    open_path,
    remove_file,
    remove_folder,
    unlink_path,
    write_path,
    writes_to,
)
from harness_nb.policy.code.names import Names, argument, keyword
from harness_nb.policy.code.processes import arguments_as_words, exec_program, run_if_shown, run_process, shell_text
from harness_nb.policy.code.site import Site
from harness_nb.policy.findings import UNKNOWN, Report
from harness_nb.policy.shell.reaching import is_loopback


def examine_call(site: Site) -> Report:
    """What there is against a call."""
    dotted = re.sub(r"^(posix|nt)\.", "os.", site.dotted)
    check = _EXACT.get(dotted) or next((check for pattern, check in _PATTERNS if pattern.fullmatch(dotted)), None)
    report = check(site) if check else Report()
    if isinstance(site.node.func, ast.Attribute):
        method = _METHODS.get(site.node.func.attr)
        if method and not check:
            report += method(site)
    return report


def _reads_text(site: Site) -> Report:
    """``eval``, ``exec``: text that is shown is examined, other text is asked about."""
    node = argument(site.node, 0)
    text = site.names.text(node)
    if text is not None and UNKNOWN not in text:
        return site.ground.python(text, site.ground.deeper())
    if node is not None and _own_file(node, site.names):
        return Report()
    why = "runs text as code that this cell does not show; write the code out"
    return site.ask("run code that is not shown:", why)


def _own_file(node: ast.expr, names: Names) -> bool:
    """Whether text comes from a file of the workspace that is named: like running that file."""
    inner = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    opened = [each for each in inner if names.dotted(each.func) == "open" or _is_read_text(each)]
    if len(opened) != 1:
        return False
    call = opened[0]
    where = call.func.value if isinstance(call.func, ast.Attribute) else argument(call, 0)
    path = names.path(where)
    harmless = ("open", "compile", "open().read", "pathlib.Path")
    others = [each for each in inner if each is not call and names.dotted(each.func) not in harmless]
    plain = all(isinstance(each.func, ast.Attribute) and each.func.attr == "read" for each in others)
    return path is not None and not paths.leaves_workspace(path) and plain


def _is_read_text(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("read_text", "read_bytes")


def _send(site: Site) -> Report:
    """A request that carries data."""
    place = 1 if site.dotted.endswith((".request", ".Request")) and not site.dotted.startswith("urllib.") else 0
    address = site.names.text(argument(site.node, place, "url"))
    if address is not None and is_loopback(address):
        return Report()
    return site.ask("send data out", "sends data out over the network; keep it in the workspace")


def _get(site: Site) -> Report:
    """A request without a body: asked about where the address is put together from files or the environment."""
    address = argument(site.node, 0, "url")
    if keyword(site.node, "data") is not None or keyword(site.node, "json") is not None:
        return _send(site)
    if (
        site.dotted.startswith("urllib.request.")
        and site.dotted.endswith(("urlopen", "Request"))
        and len(site.node.args) > 1
    ):
        return _send(site)
    carried = [
        each for each in (address, keyword(site.node, "params"), keyword(site.node, "headers")) if each is not None
    ]
    for node in (inner for each in carried for inner in ast.walk(each)):
        if isinstance(node, ast.Call) and (site.names.dotted(node.func) == "open" or _is_read_text(node)):
            why = "puts what it read from a file into an address or a header, which sends it out"
            return site.ask("send data out", why)
        named = isinstance(node, ast.Attribute | ast.Name) and site.names.dotted(node) == "os.environ"
        if named and address is not None and any(node is inner for inner in ast.walk(address)):
            why = "puts a variable of the environment into an address, which sends it out"
            return site.ask("send data out", why)
    return Report()


def _socket(site: Site) -> Report:
    where = argument(site.node, 0, "address", "host")
    host = where.elts[0] if isinstance(where, ast.Tuple) and where.elts else where
    if site.dotted.endswith("create_connection") and is_loopback(site.names.text(host) or ""):
        return Report()
    return site.ask("open a network connection", "opens a network connection; say what for, or do without")


def _unpickle(site: Site) -> Report:
    """Loading of objects, which runs code that stands in the file; asked about where the cell has downloaded it."""
    text = site.names.text(argument(site.node, 0)) or ""
    if site.downloads or "://" in text:
        why = "loads objects from a download, and such a file can run any code; use a format of plain data"
        return site.ask("load objects from a download", why)
    return Report()


def _torch_load(site: Site) -> Report:
    weights = keyword(site.node, "weights_only")
    if weights is not None and not (isinstance(weights, ast.Constant) and weights.value is True):
        why = "loads objects with weights_only=False, and such a file can run any code; leave that argument out"
        return site.ask("torch.load with weights_only=False", why)
    return Report()


def _unsafe_load(site: Site) -> Report:
    return site.ask("load code from a file", "loads objects in a way that can run any code; use a safe loader")


def _yaml(site: Site) -> Report:
    loader = argument(site.node, 1, "Loader")
    dotted = site.names.dotted(loader) if loader is not None else ""
    return Report() if dotted.endswith(("SafeLoader", "FullLoader", "BaseLoader")) or not dotted else _unsafe_load(site)


def _kill(site: Site) -> Report:
    target, signal = argument(site.node, 0, "pid"), argument(site.node, 1, "sig")
    if isinstance(signal, ast.Constant) and signal.value == 0:
        return Report()
    dotted = site.names.dotted(target) if target is not None else ""
    if dotted in ("os.getpid()", "os.fork()") or (isinstance(target, ast.Attribute) and target.attr == "pid"):
        return Report()
    return site.ask("kill", "ends a process that this cell did not start; end one of its own by its object")


def _machine(kind: str, why: str) -> Callable[[Site], Report]:
    def asked(site: Site) -> Report:
        return site.ask(kind, why)

    return asked


def _publish(site: Site) -> Report:
    return site.ask("publish or upload", "publishes or uploads files; leave that to the person")


_RIGHTS = _machine("change rights", "changes whose files they are, or who this process runs as")
_LIBRARY = _machine("load a library with ctypes", "loads a library of the system, past all rules; use a Python package")
_EXACT: dict[str, Callable[[Site], Report]] = {
    name: check
    for names, check in (
        ("os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput", shell_text),
        ("asyncio.create_subprocess_shell popen2.popen2", shell_text),
        ("subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen", run_process),
        ("run call", run_if_shown),
        ("asyncio.create_subprocess_exec", arguments_as_words),
        ("pty.spawn os.startfile", exec_program),
        ("os.remove os.unlink os.rmdir os.removedirs", remove_file),
        ("shutil.rmtree", remove_folder),
        ("open io.open codecs.open builtins.open", open_file),
        ("os.rename os.replace os.renames shutil.move", move_file),
        ("shutil.copy shutil.copy2 shutil.copyfile shutil.copytree", writes_to(1, "dst")),
        ("os.link os.symlink", link_file),
        ("os.makedirs os.mkdir os.truncate os.mkfifo os.mknod", writes_to(0, "name", "path")),
        ("urllib.request.urlretrieve", writes_to(1, "filename")),
        ("os.chmod os.lchmod", change_mode),
        ("os.chown os.lchown os.setuid os.setgid os.seteuid os.setreuid os.setgroups os.chroot os.setxattr", _RIGHTS),
        ("shutil.chown", _RIGHTS),
        ("os.open", writes_to(0, "path")),
        ("eval exec builtins.eval builtins.exec", _reads_text),
        ("socket.socket socket.create_connection socket.socketpair socket.create_server", _socket),
        ("asyncio.open_connection ssl.wrap_socket paramiko.SSHClient fabric.Connection pexpect.spawn", _socket),
        ("http.client.HTTPConnection http.client.HTTPSConnection", _socket),
        ("smtplib.SMTP smtplib.SMTP_SSL ftplib.FTP ftplib.FTP_TLS telnetlib.Telnet xmlrpc.client.ServerProxy", _socket),
        ("urllib.request.urlopen urllib.request.Request", _get),
        (
            "pickle.load pickle.loads pickle.Unpickler cloudpickle.load cloudpickle.loads dill.load dill.loads",
            _unpickle,
        ),
        ("joblib.load pandas.read_pickle marshal.loads marshal.load shelve.open", _unpickle),
        ("torch.load", _torch_load),
        ("yaml.unsafe_load yaml.full_load_all yaml.unsafe_load_all", _unsafe_load),
        ("yaml.load yaml.load_all", _yaml),
        ("os.kill os.killpg signal.pthread_kill signal.pidfd_send_signal os.pidfd_open", _kill),
        ("ctypes.CDLL ctypes.PyDLL ctypes.cdll.LoadLibrary ctypes.WinDLL cffi.dlopen ctypes.pythonapi", _LIBRARY),
        ("os.path.expanduser pathlib.Path.home pathlib.Path.expanduser", expand_user),
        ("os.chdir", change_folder),
        ("webbrowser.open", _get),
    )
    for name in names.split()
}
_PATTERNS: list[tuple[re.Pattern[str], Callable[[Site], Report]]] = [
    (re.compile(r"os\.(exec|spawn|posix_spawn)\w*"), exec_program),
    (
        re.compile(r"(requests|httpx|urllib3|aiohttp)(\.\w+(\(\))?)*\.(post|put|patch|delete|request|Request|stream)"),
        _send,
    ),
    (re.compile(r"(requests|httpx|urllib3|aiohttp)(\.\w+(\(\))?)*\.(get|head|options)"), _get),
    (re.compile(r"psutil\..*\.(kill|terminate|suspend|send_signal)"), _kill),
    (re.compile(r"huggingface_hub\.(upload_\w+|create_\w+|delete_\w+)"), _publish),
]
_METHODS: dict[str, Callable[[Site], Report]] = {
    "run": run_if_shown,
    "call": run_if_shown,
    "unlink": unlink_path,
    "rmdir": unlink_path,
    "write_text": write_path,
    "write_bytes": write_path,
    "touch": write_path,
    "mkdir": write_path,
    "open": open_path,
    "expanduser": expand_user,
    "push_to_hub": _publish,
    "upload_file": _publish,
    "upload_folder": _publish,
    "upload_fileobj": _publish,
    "put_object": _publish,
    "to_csv": writes_to(0, "path_or_buf"),
    "to_json": writes_to(0, "path_or_buf"),
    "to_parquet": writes_to(0, "path"),
    "to_pickle": writes_to(0, "path"),
    "savefig": writes_to(0, "fname"),
    "extractall": writes_to(0, "path"),
}
