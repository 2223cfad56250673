"""The rig's network: one namespace with a bridge and a tap for each guest, and packet loss on that bridge."""
import subprocess

from .host import RigError, rig_name, run

BRIDGE = 'br-rig'
HOST_IP4 = '10.77.0.1'
HOST_IP6 = 'fd77::1'
HOST_MAC = '02:77:00:00:00:01'
LOSS_TABLE = 'rig_loss'


def guest_mac(guest):
    return '02:77:00:00:00:%02x' % (guest + 1)


def tap(guest):
    return 'tap%d' % guest


def namespace_name():
    return 'rig-' + rig_name()


def inside(namespace, *command):
    return ['ip', 'netns', 'exec', namespace, *command]


def make_namespace(namespace):
    """Make it, or raise: one of that name which is there already is not ours."""
    run('ip', 'netns', 'add', namespace)


def make_bridge(namespace, guests, mtu):
    # Addresses must work at once and stay the ones we gave.
    quiet = ['echo 0 > /proc/sys/net/ipv6/conf/%s/%s' % (which, key)
             for which in ('all', 'default') for key in ('accept_dad', 'accept_ra')]
    run(*inside(namespace, 'sh', '-c', '; '.join(quiet)))
    lines = ['link set lo up',
             'link add %s address %s type bridge forward_delay 0 stp_state 0 mcast_snooping 0' % (BRIDGE, HOST_MAC)]
    for guest in range(1, guests + 1):
        lines += ['tuntap add dev %s mode tap vnet_hdr' % tap(guest),
                  'link set %s mtu %d master %s addrgenmode none up' % (tap(guest), mtu, BRIDGE)]
    lines += ['link set %s mtu %d up' % (BRIDGE, mtu),
              'addr add %s/24 dev %s' % (HOST_IP4, BRIDGE),
              'addr add %s/64 dev %s nodad' % (HOST_IP6, BRIDGE)]
    run('ip', '-n', namespace, '-batch', '-', stdin='\n'.join(lines) + '\n')


def processes(namespace):
    return [int(pid) for pid in run('ip', 'netns', 'pids', namespace, check=False).split() if pid.isdigit()]


def delete_namespace(namespace):
    run('ip', 'netns', 'del', namespace, check=False)


GSI_ONLY = '@th,104,24 1 '  # The destination QP of the BTH, behind the 8 bytes of UDP.


def drop(namespace, n, direction, numbers, gsi_only):
    """
    Drop one in n RoCEv2 packets in that direction (to1, from1, to2, from2 or any): every nth, counted anew (numbers 'inc'), or each with
    probability 1/n ('random'). gsi_only: only management datagrams, those to QP1, count and are dropped.
    """
    stop_dropping(namespace)
    match = ''
    if direction != 'any':
        match = 'ether %s %s ' % ('daddr' if direction.startswith('to') else 'saddr', guest_mac(int(direction[-1])))
    # A frame between guests passes `forward`; between a guest and the host `input` or `output`.
    hooks = ('forward', 'input', 'output')
    lines = ['add table bridge %s' % LOSS_TABLE]
    for hook in hooks:
        lines += ['add chain bridge %s %s { type filter hook %s priority 0; }' % (LOSS_TABLE, hook, hook),
                  'add rule bridge %s %s %sudp dport 4791 %snumgen %s mod %d == %d counter drop' % (
                      LOSS_TABLE, hook, match, GSI_ONLY if gsi_only else '', numbers, n, n - 1)]
    run(*inside(namespace, 'nft', '-f', '-'), stdin='\n'.join(lines) + '\n')


def dropped_packets(namespace):
    listing = subprocess.run(inside(namespace, 'nft', 'list', 'table', 'bridge', LOSS_TABLE),
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    words = listing.split()
    return sum(int(words[i + 1]) for i, word in enumerate(words) if word == 'packets')


def stop_dropping(namespace):
    """Returns how many packets were dropped."""
    dropped = dropped_packets(namespace)
    run(*inside(namespace, 'nft', 'delete', 'table', 'bridge', LOSS_TABLE), check=False)
    return dropped


def require_bridge(record):
    if record['namespace'] is None:
        raise RigError('this rig runs over --dgram: it has no bridge and no namespace')
    return record['namespace']
