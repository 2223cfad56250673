"""One guest: its QEMU command line, its start, and waiting until rxe0 is up in it."""
import os
import subprocess
import time

from . import channel, network, process, record
from .host import RigError

EMULATION = ['-M', 'q35', '-accel', os.environ.get('RIG_ACCEL', 'tcg,thread=multi'), '-cpu', 'max', '-smp', '2', '-m',
             os.environ.get('RIG_MEMORY', '512')]


def describe(number, mtu, dgram_ports, ip4, ip6):
    """The record of a guest that has not been started. dgram_ports: (local, remote) or None for a tap."""
    return {
        'number': number,
        'mac': network.guest_mac(number),
        'ip4': ip4 or '10.77.0.%d/24' % (number + 1),
        'ip6': ip6 or 'fd77::%d/64' % (number + 1),
        'mtu': mtu,
        'interface': None if dgram_ports else network.tap(number),
        'dgramPorts': dgram_ports,
        'process': None,
    }


def netdev(guest):
    if guest['dgramPorts'] is None:
        return 'tap,id=net,ifname=%s,script=no,downscript=no,vhost=off' % guest['interface']
    # One Ethernet frame is one UDP datagram.
    return ('dgram,id=net,local.type=inet,local.host=127.0.0.1,local.port=%d,'
            'remote.type=inet,remote.host=127.0.0.1,remote.port=%d' % tuple(guest['dgramPorts']))


def command_line(guest, image):
    number = guest['number']
    parameters = ('console=ttyS0 quiet nokaslr mitigations=off tsc=reliable random.trust_cpu=on panic=-1 oops=panic '
                  'rig.name=g%d rig.ip4=%s rig.ip6=%s rig.mtu=%d rig.channels=%d' % (
                      number, guest['ip4'], guest['ip6'], guest['mtu'], channel.CHANNELS))
    command = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', *EMULATION,
               '-display', 'none', '-monitor', 'none', '-no-reboot', '-serial', 'file:' + channel.console(number),
               '-kernel', os.path.join(image, 'vmlinuz'), '-initrd', os.path.join(image, 'initrd.cpio'),
               '-append', parameters,
               '-netdev', netdev(guest),
               '-device', 'virtio-net-pci,netdev=net,mac=%s,host_mtu=%d,romfile=' % (guest['mac'], guest['mtu']),
               '-object', 'rng-random,id=entropy,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=entropy',
               '-device', 'virtio-serial-pci,max_ports=%d' % (channel.CHANNELS + 1)]
    for index in range(1, channel.CHANNELS + 1):
        # A name relative to QEMU's directory: a socket's path may have no more than 107 bytes.
        command += ['-chardev', 'socket,id=c%d,path=%s,server=on,wait=off' % (index, channel.socket_name(number, index)),
                    '-device', 'virtserialport,chardev=c%d,name=rig.%d' % (index, index)]
    return command


def start(guest, image, namespace):
    command = command_line(guest, image)
    if namespace is not None:
        command = network.inside(namespace, *command)  # `ip netns exec` becomes QEMU: the process id stays
    with open(record.path('g%d.qemu' % guest['number']), 'w') as log:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                cwd=record.directory(), start_new_session=True)
    guest['process'] = process.identify(qemu.pid)


def await_ready(guest, deadline):
    number = guest['number']
    while not os.path.exists(record.path(channel.socket_name(number, 1))):
        if not process.is_alive(guest['process']) or time.monotonic() > deadline:
            with open(record.path('g%d.qemu' % number)) as log:
                raise RigError('QEMU did not start: %s' % log.read().strip())
        time.sleep(0.01)
    result = channel.execute(guest, 'cat /sys/class/infiniband/rxe0/ports/1/state',
                             max(1, deadline - time.monotonic()))
    if 'ACTIVE' not in result.stdout.decode():
        raise RigError('guest %d came up without an active rxe0: %s; %s' % (
            number, result.stderr.decode(), channel.console_tail(number)))
