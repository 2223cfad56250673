"""What must be on this machine: whether the rig can run here, the host's packages, and the guest image."""
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess

from .host import RigError, private_directory

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# program -> the Debian package it comes from
HOST_PROGRAMS = {
    'qemu-system-x86_64': 'qemu-system-x86',
    'ip': 'iproute2',
    'nft': 'nftables',
    'dumpcap': 'wireshark-common',
}
BUILD_PROGRAMS = {'depmod': 'kmod', 'gcc': 'gcc libc6-dev'}


def missing_packages(image_needed):
    wanted = dict(HOST_PROGRAMS, **(BUILD_PROGRAMS if image_needed else {}))
    return sorted(' '.join(package for program, package in wanted.items() if not shutil.which(program)).split())


def image_directory():
    """The image's place; its name changes with everything the image is made from, so a stale one is never used."""
    digest = hashlib.sha256()
    for name in ('build-guest.sh', 'guest/init', 'guest/rig-agent', 'guest/rigverbs.c', 'guest/rigio.c',
                 '../../../packages/inspect/src/commands/conform/agent.c'):
        with open(os.path.join(HERE, name), 'rb') as file:
            digest.update(file.read())
    digest.update(os.environ.get('RIG_KERNEL', '').encode())
    return os.path.join(private_directory('image'), digest.hexdigest()[:16])


def refusal(bridge):
    """Why a rig cannot run here, in one line, or None. bridge: with taps and a bridge, not over --dgram."""
    if platform.system() != 'Linux' or platform.machine() != 'x86_64':
        return 'the rig needs Linux on x86-64, this is %s on %s' % (platform.system(), platform.machine())
    if bridge:
        if os.geteuid() != 0:
            return 'not root: the rig makes a network namespace, a bridge and tap devices'
        try:
            os.close(os.open('/dev/net/tun', os.O_RDWR))
        except OSError as error:
            return 'no tap devices here: /dev/net/tun: %s' % error.strerror
        if subprocess.run(['unshare', '-n', 'true'], stderr=subprocess.DEVNULL).returncode:
            return 'this machine does not let us make a network namespace'
    image_needed = not os.path.exists(image_directory())
    packages = missing_packages(image_needed)
    if packages and not shutil.which('apt-get'):
        return 'missing, and there is no apt to install them: %s' % ' '.join(packages)
    if packages and os.geteuid() != 0:
        return 'missing, and we are not root to install them: %s' % ' '.join(packages)
    if image_needed and not (shutil.which('apt-get') and shutil.which('dpkg-deb')):
        return 'the guest is made of Debian packages, and there is no apt here'
    return None


def install(packages):
    command = ['apt-get', 'install', '-y', '-qq', '--no-install-recommends'] + packages
    environment = dict(os.environ, DEBIAN_FRONTEND='noninteractive')

    def attempt():
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    result = attempt()
    if result.returncode:  # no package lists yet, or stale ones
        subprocess.run(['apt-get', 'update', '-qq'], stdout=subprocess.DEVNULL)
        result = attempt()
    if result.returncode:
        raise RigError('cannot install %s: %s' % (' '.join(packages), result.stdout.strip()))


def prepare():
    """Install and build whatever is missing; the image's directory."""
    directory = image_directory()
    with open(os.path.join(private_directory('image'), 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test files may start their first rig at the same time
        image_needed = not os.path.exists(directory)
        packages = missing_packages(image_needed)
        if packages:
            install(packages)
        if image_needed:
            unfinished = directory + '.unfinished'
            shutil.rmtree(unfinished, ignore_errors=True)
            result = subprocess.run([os.path.join(HERE, 'build-guest.sh'), unfinished],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if result.returncode:
                raise RigError('the guest image cannot be built: %s' % result.stdout.strip())
            os.rename(unfinished, directory)
    return directory
