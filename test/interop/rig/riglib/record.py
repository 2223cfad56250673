"""What a running rig consists of, in DIRECTORY/state.json: written before a part starts to matter, read by every verb."""
import json
import os
import shutil

from .host import RigError, private_directory, rig_name


def directory():
    return os.path.join(private_directory('run'), rig_name())


def path(name):
    return os.path.join(directory(), name)


def load():
    """The record of this rig, or None when it is not up."""
    try:
        with open(path('state.json')) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def require():
    record = load()
    if record is None:
        raise RigError('not up (rig up)')
    return record


def save(record):
    os.makedirs(directory(), mode=0o700, exist_ok=True)
    with open(path('state.json.new'), 'w') as file:
        json.dump(record, file, indent=2)
    os.replace(path('state.json.new'), path('state.json'))


def forget():
    shutil.rmtree(directory())
