"""Which family each command belongs to: the table from a name to what there is against it. Pure.

A command that is not in the table is nothing to ask about by itself; where it writes to and what it reads still is.
"""

from __future__ import annotations

from collections.abc import Callable

from harness_nb.policy.shell import machine, reaching, removing
from harness_nb.policy.shell.dangers import Danger, has_option, positional
from harness_nb.policy.shell.git import git_dangers

Check = Callable[[list[str]], list[Danger]]


def _table(*rows: tuple[str, Check]) -> dict[str, Check]:
    return {name: check for names, check in rows for name in names.split()}


def _uv_dangers(words: list[str]) -> list[Danger]:
    plain = positional(words)
    if plain[:1] == ["pip"]:
        return reaching.pip_dangers(["pip", *words[words.index("pip") + 1 :]])
    if plain[:2] in (
        ["tool", "install"],
        ["tool", "run"],
        ["tool", "uninstall"],
        ["python", "install"],
        ["self", "update"],
    ):
        return [Danger(f"uv {plain[0]}", "installs or runs programs outside of the environment")]
    return reaching.publish_dangers(words)


def _conda_dangers(words: list[str]) -> list[Danger]:
    plain = positional(words)
    if plain[:1] and plain[0] in (
        "install",
        "remove",
        "uninstall",
        "update",
        "upgrade",
        "create",
        "env",
        "init",
        "config",
    ):
        named = has_option(words, "np", "--name", "--prefix") or plain[0] in ("init", "config", "create")
        if named or plain[:2] == ["env", "remove"]:
            return [Danger(f"{words[0]} {plain[0]}", "changes another environment, or the set-up of conda")]
    return []


def _jupyter_dangers(words: list[str]) -> list[Danger]:
    plain = positional(words)
    if (
        plain[:1]
        and plain[0] in ("kernelspec", "labextension", "server", "lab", "notebook")
        and (len(plain) < 2 or plain[1] not in ("list", "check", "--version"))
    ):
        return [Danger(f"jupyter {plain[0]}", "starts, stops or changes the Jupyter that people work in")]
    return []


FAMILIES: dict[str, Check] = _table(
    ("rm unlink", removing.rm_dangers),
    ("find", removing.find_dangers),
    ("chmod chown chgrp setfacl chattr setcap", removing.rights_dangers),
    ("kill", removing.kill_dangers),
    ("pkill killall killall5 skill xkill", removing.pattern_kill_dangers),
    ("git", git_dangers),
    ("sudo doas su pkexec runuser chroot nsenter unshare newgrp sg setpriv", machine.rights_of_others),
    ("shutdown reboot halt poweroff telinit mkfs mke2fs mkswap wipefs blkdiscard hdparm", machine.damage),
    ("mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs", machine.damage),
    ("fdisk sfdisk gdisk parted sgdisk cfdisk", machine.disk_dangers),
    ("dd", machine.dd_dangers),
    ("useradd userdel usermod groupadd groupmod passwd chpasswd visudo adduser deluser", machine.machine_change),
    ("iptables ip6tables nft ufw firewall-cmd modprobe insmod rmmod swapon swapoff", machine.machine_change),
    (
        "update-alternatives ldconfig hostnamectl timedatectl localectl sysrc setenforce dpkg-reconfigure",
        machine.machine_change,
    ),
    ("mount umount losetup", machine.mount_dangers),
    ("sysctl", machine.sysctl_dangers),
    ("systemctl service launchctl rc-service loginctl", machine.service_dangers),
    ("crontab at batch systemd-run anacron", machine.schedule_dangers),
    ("docker podman nerdctl docker-compose lxc ctr", machine.container_dangers),
    ("history shred wipe srm", machine.history_dangers),
    ("tar bsdtar gtar cpio", machine.archive_dangers),
    ("vi vim nvim ex view emacs ed less man", machine.editor_dangers),
    ("sed gsed", machine.sed_dangers),
    (
        "perl ruby node nodejs deno bun php lua luajit Rscript R julia osascript tclsh awk gawk mawk nawk",
        machine.program_dangers,
    ),
    ("curl", reaching.curl_dangers),
    ("wget wget2", reaching.wget_dangers),
    ("http https xh", reaching.httpie_dangers),
    (
        "scp sftp ftp lftp rsync rclone nc ncat netcat socat telnet ssh mail mailx sendmail mutt magic-wormhole",
        reaching.send_dangers,
    ),
    ("wormhole croc transfer ngrok cloudflared", reaching.send_dangers),
    (
        "gh glab aws gcloud az gsutil kubectl helm terraform tofu pulumi heroku fly flyctl vercel netlify",
        reaching.cloud_dangers,
    ),
    ("ansible ansible-playbook kaggle doctl s3cmd mc", reaching.cloud_dangers),
    ("pip pip3", reaching.pip_dangers),
    ("uv", _uv_dangers),
    ("conda mamba micromamba", _conda_dangers),
    (
        "apt apt-get aptitude dnf yum zypper apk pacman brew snap flatpak port emerge nix-env",
        reaching.system_install_dangers,
    ),
    ("cargo go gem pipx opam cpan", reaching.toolchain_dangers),
    ("dpkg rpm installer", reaching.system_install_dangers),
    ("npm yarn pnpm", reaching.node_dangers),
    ("npx uvx bunx", reaching.remote_run_dangers),
    ("twine flit hatch poetry pdm rye maturin hf huggingface-cli anaconda wandb dvc mlflow", reaching.publish_dangers),
    ("jupyter", _jupyter_dangers),
)
