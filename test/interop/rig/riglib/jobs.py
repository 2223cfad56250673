"""Background jobs and files in a guest, as shell commands for its command channel."""
import base64
import shlex

PIECE_BYTES = 48 * 1024  # of a file in one command line


def files(name):
    return shlex.quote('/run/rig/job.' + name)


def start(name, command):
    # A session of its own, so that `kill` reaches everything the command started.
    return (
        'job={job}; rm -f $job.*; printf %s {command} > $job.command\n'
        "setsid sh -c 'echo $$ > $0.pid; sh $0.command; echo $? > $0.new; mv $0.new $0.status' $job"
        ' < /dev/null > $job.stdout 2> $job.stderr &\n'
        'until [ -s $job.pid ]; do usleep 5000; done').format(job=files(name), command=shlex.quote(command))


def wait(name):
    return ('job={job}; [ -e $job.command ] || {{ echo "no job of that name" >&2; exit 90; }}\n'
            'until [ -e $job.status ]; do usleep 20000; done\n'
            'cat $job.stdout; cat $job.stderr >&2; exit $(cat $job.status)').format(job=files(name))


def log(name):
    return 'job={job}; cat $job.stdout; cat $job.stderr >&2'.format(job=files(name))


def kill(name):
    # The shell that would have noted the exit status ends with the rest, so it is noted here: that of SIGTERM.
    return ('job={job}; [ -e $job.status ] && exit 0; session=$(cat $job.pid)\n'
            'kill -TERM -$session; tries=0\n'
            'while kill -0 -$session 2> /dev/null && [ $tries -lt 50 ]; do usleep 20000; tries=$((tries + 1)); done\n'
            'kill -KILL -$session 2> /dev/null; echo 143 > $job.status').format(job=files(name))


def await_listener(port):
    return ("until ss -Hltn 'sport = :{0}' | grep -q . ||\n"
            "  rdma resource show cm_id | grep -q 'state LISTEN .* src-addr [^ ]*:{0} '; do usleep 20000; done").format(port)


def pieces(data, destination, mode):
    """Commands that write the file, in order."""
    target = shlex.quote(destination)
    yield ': > %s && chmod %o %s' % (target, mode, target)
    for offset in range(0, len(data), PIECE_BYTES):
        yield 'echo %s | base64 -d >> %s' % (base64.b64encode(data[offset:offset + PIECE_BYTES]).decode(), target)
