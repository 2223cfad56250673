"""Commands on this machine, and where the rig keeps its files."""
import os
import re
import subprocess
import tempfile

# Debian keeps ip, nft and dumpcap's friends where an ordinary user's PATH does not look.
os.environ['PATH'] = os.environ.get('PATH', '') + ':/usr/local/sbin:/usr/sbin:/sbin'


class RigError(Exception):
    """The rig itself failed, as opposed to a command it was asked to run."""


def run(*command, stdin=None, check=True):
    """Run a command; its output (both streams). Raises RigError with that output when it fails."""
    result = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and result.returncode:
        raise RigError('%s: %s' % (' '.join(command), result.stdout.strip()))
    return result.stdout


def private_directory(*parts):
    """A directory under the temporary one that only we can write to, created when missing."""
    path = os.path.realpath(tempfile.gettempdir())
    for part in ('rocev2-rig-%d' % os.getuid(),) + parts:
        path = os.path.join(path, part)
        os.makedirs(path, mode=0o700, exist_ok=True)
        # Anybody may create names in /tmp: an image found in somebody else's directory would run as our guest.
        if os.lstat(path).st_uid != os.getuid():
            raise RigError('%s belongs to somebody else' % path)
    return path


def rig_name():
    """RIG_NAME tells rigs that run at the same time apart."""
    name = os.environ.get('RIG_NAME', 'default')
    if not re.fullmatch(r'[A-Za-z0-9-]{1,64}', name):
        raise RigError('RIG_NAME must be 1 to 64 letters, digits or dashes, not %r' % name)
    return name
