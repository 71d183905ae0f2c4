"""The memory of a device, shared by the components of a program.

MemoryManager has the names, arguments and behaviour of cubie's (ccam80/cubie). Parts,
pools, budgets, chunks and what gives way are the library's (ta_mm in tieralloc.h); here
are labels, arrays, hooks, the queue and streams.

Differences from the original, and why:

  "managed" memory is allocated
      the original refuses it with NotImplementedError; the library has it
  active mode refuses what is beyond the group's parts, with MemoryError
      the original only computes chunks from them
  idle instances give way: their arrays are let go, and their invalidate hooks are called
      others would fail for want of memory that nobody works with; the original lets them
  what a queue replaces goes first where room is short, also out of responses that the program has
      it would count against the queue, which would be cut further in each round, or fail
  a chunk fits as the library rounds sizes, and is shortened where memory is refused
      the original sums bytes, and fails where rounding leaves no room for them
  a member without requests is called once by allocate_queue
      the original calls it once for each member with requests
  an empty queue needs no memory
      nothing is asked for; the original computes chunks all the same, and fails where nothing is available
  total_runs is the largest of the queued requests'
      the original takes the first array's of each instance, so that the order of the arrays,
      one without runs first, decides what is cut
  without chunks an array has the shape that was asked for, and a chunk is never longer than its axis
      the original gives each array the length of the runs of the first
  allocate_queue releases what it allocated when it fails, and the queue stays
      the original loses the requests, and keeps what it allocated
  a failed call changes nothing, but that what it was to replace may be gone, and is told of
      the original leaves an instance that was refused half registered
  arrays that only the program has still are accounted
      they take memory; the original counts those it has a label for
  totalmem is what it was given
      the original documents that, and replaces it by the device's
  hooks are all called, although one raises an error, which is raised at the end
      the others would work with arrays that are gone
  an instance that is garbage leaves
      the original keeps its number, which Python gives to another object
  requests that are queued move with change_stream_group
      the original allocates them for the group that was left
  chunk lengths are exact
      the original rounds by doubles, which is one run less at times

  set_manual_limit_mode and set_auto_limit_mode raise ValueError for an instance that is in the pool already
      the original's documentation promises that; its code returns, and ignores a new proportion
  registry, pools and queued_allocations of the constructor are taken as they are documented
      the original replaces the registry by an empty one, so that the pools name nobody

proportion 0 in register is automatic, as there.
"""

import dataclasses
import errno
import functools
import os
import threading
import warnings
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from . import _allocators, _blocks, _numba, _streams
from ._budget import ASK, KINDS, MOST, SMALL, Chunking
from ._groups import StreamGroups
from ._members import Members
from ._members import ensure_cuda_context as _ensure_cuda_context
from ._requests import MEMORY_TYPES, ArrayRequest, ArrayResponse, Requests, Shape, get_portioned_request_size
from ._requests import check_requests, is_request_chunkable, replace_with_chunked_size
from ._room import Room, hopeless
from ._settings import InstanceMemorySettings

__all__ = ["ArrayRequest", "ArrayResponse", "InstanceMemorySettings", "MemoryManager", "StreamGroups",
           "get_portioned_request_size", "is_request_chunkable", "replace_with_chunked_size"]


def _call_all(calls: Iterable[Callable[[], None]]) -> None:
    """Call all; the first error is raised at the end."""
    first: Optional[BaseException] = None
    for call in list(calls):
        try:
            call()
        except BaseException as error:
            first = first or error
    if first is not None:
        raise first


def _all_of(requests: Dict[int, Requests]) -> List[ArrayRequest]:
    """The requests of all instances."""
    return [request for wanted in requests.values() for request in wanted.values()]


def _turn(nbytes: int) -> Tuple[bool, int]:
    """When an array is allocated."""
    return nbytes >= SMALL, -nbytes


def _pairs(from_arrays: Sequence[Any], to_arrays: Sequence[Any]) -> List[Tuple[Any, Any]]:
    if len(from_arrays) != len(to_arrays):
        raise ValueError(f"{len(from_arrays)} from_arrays and {len(to_arrays)} to_arrays: expected as many")
    return list(zip(from_arrays, to_arrays))


def _on_device(array: Any, device: int) -> Any:
    """An array of the device, with methods to copy it."""
    if hasattr(array, "copy_to_device") and hasattr(array, "copy_to_host"):
        return array
    if not hasattr(array, "__cuda_array_interface__"):
        raise TypeError(f"an array of type {type(array).__name__}: expected one that the device reaches")
    from ._arrays import DeviceArray
    return DeviceArray.over(array, device)


class MemoryManager(Members):
    """Shares a device's memory between instances, and cuts what does not fit along the runs.

    totalmem       bytes to share; None: all that the device has under the limits
    stream_groups  the groups and their streams
    mode           "passive": what is free bounds a request; "active": also what the instance's
                   group may have by its members' parts
    allocator      what numba gets its own arrays from, if that was set already
    device, name   the device, and what reports call this manager

    registry, auto_pool, manual_pool and queued_allocations are arguments of the original: settings by
    the numbers of instances (id), which of these have a share and which the proportion of their
    settings, and what they want, by groups. A number in neither pool has a share. Whoever is given so stays, since
    only its number is known. Otherwise the manager does not keep instances alive: one that is garbage leaves it.
    (One whose class has no weak references is kept.) An instance's arrays are freed, in the
    order of the stream that they were allocated for, when neither the manager nor the
    program has them any more.
    """

    # Arrays

    def allocate(self, shape: Any, dtype: Any, memory_type: str, stream: Any = 0) -> Any:
        """An array in C order that no instance is charged with.

        memory_type  "device", "mapped", "pinned" or "managed"
        stream       the stream whose work the array is for
        """
        self._check_memory(memory_type)
        _ensure_cuda_context(self.device)
        from ._arrays import make
        return make(memory_type, shape, dtype, self.device, stream, _blocks.of_device(self.device, memory_type, stream))

    @staticmethod
    def _check_memory(memory_type: Any) -> None:
        if memory_type not in tuple(KINDS):
            raise ValueError(f"Invalid memory type: {memory_type!r}: expected {', '.join(map(repr, MEMORY_TYPES))}")

    def _allocate_for(self, settings: InstanceMemorySettings, requests: Requests, stream: Any) -> Dict[str, Any]:
        """The arrays of requests, all or none, charged to an instance."""
        from ._arrays import make
        arrays: Dict[str, Any] = {}
        try:
            for key, request in requests.items():
                block = _blocks.of_account(self._budget, settings.account, request.memory, stream)
                arrays[key] = make(request.memory, request.shape, request.dtype, self.device, stream, block)
        except BaseException:
            arrays.clear()  # the error's traceback would keep them
            raise
        return arrays

    def allocate_all(self, requests: Requests, instance_id: int, stream: Any) -> Dict[str, Any]:
        """The arrays of an instance's requests, all or none, by their labels.

        instance_id is id(instance). They replace those that had the labels, which go first where room is short.
        MemoryError where there is no room: in active mode the group's parts bound it. If arrays went for
        it, the instance is told by its invalidate hook.
        """
        self._check_requests(requests)
        settings = self._settings(instance_id, instance_id)
        _ensure_cuda_context(self.device)
        released = self._short_of(instance_id, requests) and settings.release(requests)
        try:
            arrays = self._allocate_for(settings, requests, stream)
        except MemoryError:
            if released:
                settings.invalidate_hook()
            raise
        for key, array in arrays.items():
            settings.add_allocation(key, array)
        return arrays

    def _short_of(self, instance_id: int, requests: Requests) -> bool:
        """Whether there is no room for requests, and could be."""
        group = self.stream_groups.get_group(instance_id)
        size = sum(request.nbytes for request in requests.values())
        available = self._budget.available(group, self._free() if self._fixed else ASK)[0]
        return available < size <= self._most(group)

    def create_host_array(self, shape: Any, dtype: Any, memory_type: str = "pinned", like: Any = None) -> Any:
        """An array of NumPy in C order, "pinned" or in ordinary memory ("host"): a copy of like, or zeros."""
        if memory_type not in ("pinned", "host"):
            raise ValueError(f"memory_type must be 'pinned' or 'host', got {memory_type!r}")
        if memory_type == "pinned":
            array = self.allocate(shape, dtype, "pinned")
        else:
            import numpy as np
            array = np.empty(shape, dtype=dtype)
        array[...] = 0 if like is None else like
        return array

    def free(self, array_label: str) -> None:
        """Let the arrays with a label go, of all instances."""
        for settings in list(self.registry.values()):
            if array_label in settings.allocations:
                settings.free(array_label)

    def free_all(self) -> None:
        """Let all arrays of all instances go."""
        for settings in list(self.registry.values()):
            settings.free_all()

    def invalidate_all(self) -> None:
        """Let all arrays go, and call each instance's invalidate hook."""
        self.free_all()
        _call_all(settings.invalidate_hook for settings in list(self.registry.values()))

    def to_device(self, instance: object, from_arrays: Sequence[Any], to_arrays: Sequence[Any]) -> None:
        """Copy arrays to those of the device, in the order of the instance's stream."""
        pairs = [(source, _on_device(target, self.device)) for source, target in _pairs(from_arrays, to_arrays)]
        _ensure_cuda_context(self.device)
        stream = self.get_stream(instance)
        for source, target in pairs:
            target.copy_to_device(source, stream=stream)

    def from_device(self, instance: object, from_arrays: Sequence[Any], to_arrays: Sequence[Any]) -> None:
        """Copy arrays of the device to those of the host, in the order of the instance's stream."""
        pairs = [(_on_device(source, self.device), target) for source, target in _pairs(from_arrays, to_arrays)]
        _ensure_cuda_context(self.device)
        stream = self.get_stream(instance)
        for source, target in pairs:
            source.copy_to_host(target, stream=stream)

    def set_allocator(self, name: str) -> None:
        """Have numba get its own arrays from "default" (numba), "tieralloc", "cupy" or "cupy_async".

        The arrays of this manager come from the library in any case. numba's context is
        closed and opened again: its arrays, streams and compiled kernels are void, and so all instances'
        arrays go, and their invalidate hooks are called.
        """
        if name not in _allocators.NAMES:
            raise ValueError(f"Unknown allocator: {name!r}: expected {', '.join(map(repr, _allocators.NAMES))}")
        cuda = _numba.cuda()
        if cuda is None:
            raise RuntimeError(f"allocator {name!r} is for numba, and this process does not use numba.cuda with a device")
        manager = _allocators.manager_class(cuda, name)
        self.free_all()
        cuda.set_memory_manager(manager)
        self._allocator = manager
        cuda.close()
        if threading.current_thread() is threading.main_thread():  # for others numba leaves the contexts as they are
            _blocks.contexts_ended()
        cuda.current_context()
        self.reinit_streams()
        self.invalidate_all()

    # Requests

    def _check_requests(self, requests: Any) -> None:
        check_requests(requests)

    def get_available_memory(self, group: str) -> int:
        """Bytes that a group may have now. UserWarning where it has used more than 95% of its parts."""
        available, nearly_full = self._budget.available(group, self._free())
        if nearly_full:
            warnings.warn(f"Stream group {group} has used more than 95% of its allotted memory already, and future requests"
                          f" will run slowly/in many chunks: {available} bytes are left", UserWarning, stacklevel=2)
        return available

    def _free(self) -> int:
        return max(0, int(self.get_memory_info()[0]))

    @property
    def _fixed(self) -> bool:
        """Whether a subclass says what is free."""
        return getattr(self.get_memory_info, "__func__", None) is not Members.get_memory_info

    def _cut(self, group: str, requests: Sequence[ArrayRequest], runs: int) -> Tuple[int, Chunking]:
        """How requests are cut now: 0 or what is wrong as an errno, and the figures."""
        return self._budget.chunk(group, self._free() if self._fixed else ASK, requests, runs)

    def get_chunk_parameters(self, requests: Dict[int, Requests], axis_length: int, stream_group: str) -> Tuple[int, int]:
        """How many runs a chunk of a group's requests has, and how many chunks that makes.

        UserWarning where more than 20 times what is free is asked for, or the group has used nearly all
        it may; ValueError where the requests do not fit although they are cut.
        """
        for wanted in requests.values():
            self._check_requests(wanted)
        if isinstance(axis_length, bool) or not isinstance(axis_length, int) or not 1 <= axis_length <= MOST:
            raise ValueError(f"axis_length {axis_length!r}: expected a whole number of runs from 1 to {MOST}")
        why, found = self._cut(stream_group, _all_of(requests), axis_length)
        if why == errno.EINVAL:
            raise ValueError(f"stream_group {stream_group!r}, axis_length {axis_length}: the library does not take them")
        size = found.chunkable + found.unchunkable
        if found.nearly_full:
            warnings.warn(f"Stream group {stream_group} has used more than 95% of its allotted memory already, and requests"
                          " will run slowly/in many chunks", UserWarning, stacklevel=2)
        if found.far_too_large:
            warnings.warn(f"This request exceeds available VRAM by more than 20x. Available VRAM = {self._free()}, request size ="
                          f" {size}.", UserWarning, stacklevel=2)
        if why == errno.ENOTSUP:
            raise ValueError(f"All requested arrays are unchunkable, but request size ({size}) exceeds available memory"
                             f" ({found.available}) of group {stream_group}. Cannot proceed.")
        if why == errno.E2BIG:
            raise ValueError(f"Arrays that are unchunkable require {found.unchunkable} bytes but only {found.available} bytes"
                             f" are available to group {stream_group}, of {size} bytes that are requested. Cannot proceed.")
        if why == errno.ENOSPC:
            raise ValueError(f"Can't fit a single run in GPU VRAM. Available memory: {found.available}. Request size: {size}."
                             f" Chunkable request size: {found.chunkable}, for {axis_length} runs.")
        if why != 0:
            raise RuntimeError(f"what is free on device {self.device} for {size} requested bytes: {os.strerror(why)}")
        return found.chunk_length, found.chunks

    def compute_chunked_shapes(self, requests: Requests, chunk_size: int) -> Dict[str, Shape]:
        """The shapes of a chunk's arrays. Those that are not cut keep theirs."""
        shapes = {}
        for key, request in requests.items():
            shapes[key], axis = request.shape, request.chunk_axis_index
            if axis is not None and is_request_chunkable(request):
                shapes[key] = replace_with_chunked_size(request.shape, axis, min(chunk_size, request.shape[axis]))
        return shapes

    def queue_request(self, instance: object, requests: Requests) -> None:
        """Remember an instance's requests for allocate_queue; they replace those that it has queued."""
        self._check_requests(requests)
        self._of(instance)
        with self._lock:
            self._queued_allocations.setdefault(self.get_stream_group(instance), {})[id(instance)] = requests

    def allocate_queue(self, triggering_instance: object) -> None:
        """Allocate what the group of an instance has queued, cut alike, and call the ready hook of each member once.

        Where room is short, the arrays that are about to be replaced go first, also out of the
        responses that the instances have; those that the program still has otherwise are asked for by the
        invalidate hook. Then idle instances are asked, least recently used first, and only what does not
        fit then is cut. Where memory is refused all the same, the chunks are shortened.

        Members without requests get a response without arrays, which has the chunks all the
        same. (The original calls those once for each member that has requests.) If an
        allocation fails, or the requests do not fit, what was allocated here is released,
        the queue stays as it was, those whose arrays went are told by their invalidate hooks, and the
        error is raised.
        """
        group = self.get_stream_group(triggering_instance)
        stream = self.get_stream(triggering_instance)
        with self._lock:
            queued = self._queued_allocations.pop(group, {})
        if not queued:
            return
        found = [(self.registry.get(identifier), wanted) for identifier, wanted in queued.items()]
        takers = [(settings, wanted) for settings, wanted in found if settings is not None]
        if not takers:
            return
        requests, runs = _all_of(queued), max([request.total_runs for request in _all_of(queued)], default=1)
        room = Room(self._budget, group, takers, _streams.handle(stream), lambda: self._cut(group, requests, runs), self._fixed)
        try:
            _ensure_cuda_context(self.device)
            with self._budget.holding([settings.account for settings, _ in takers]):
                if not hopeless(*get_portioned_request_size(queued), self._most(group), runs):
                    room.make()
                length, chunks = self.get_chunk_parameters(queued, runs, group)
                got, chunks, length = self._allocate_queued(queued, room, runs, chunks, length, stream)
        except BaseException:
            with self._lock:
                back = {identifier: wanted for identifier, wanted in queued.items() if identifier in self.registry}
                self._queued_allocations[group] = {**back, **self._queued_allocations.get(group, {})}
            _call_all(settings.invalidate_hook for settings in room.released)
            raise
        self._deliver(group, got, chunks, length)

    def _allocate_queued(self, queued: Dict[int, Requests], room: Room, runs: int, chunks: int, length: int,
                         stream: Any) -> Tuple[Dict[int, ArrayResponse], int, int]:
        """The responses for what a group has queued, how many chunks, and their length, which is shorter where it must be."""
        cuttable = any(map(is_request_chunkable, _all_of(queued)))
        step = length // 64 + 1
        while True:
            try:
                return self._answers(queued, chunks, length, stream, room), chunks, length
            except MemoryError:  # what is free is in pieces, perhaps
                if room.more():
                    continue
                if length == 1 or not cuttable:
                    raise
            length, step = max(1, length - step), step * 2
            chunks = -(-runs // length)

    def _most(self, group: str) -> int:
        """What a group could have if nobody had anything."""
        total = max(0, int(self.get_memory_info()[1]))
        if self._mode == "passive":
            return total
        members = set(self.stream_groups.get_instances_in_group(group))
        return min(total, sum(info.cap for identifier, _, info in self._infos() if identifier in members))

    def _answers(self, queued: Dict[int, Requests], chunks: int, length: int, stream: Any,
                 room: Room) -> Dict[int, ArrayResponse]:
        """What each instance gets, all or nothing. Those that have become garbage get nothing.

        Small arrays come first, then the largest: small ones have segments of their own, for which there may be no
        room once a large segment is in use, and pieces of such are for what is smaller.
        """
        from ._arrays import make
        wanted = {identifier: self._chunked(requests, chunks, length) for identifier, requests in queued.items()}
        order = sorted(((identifier, key) for identifier, requests in wanted.items() for key in requests),
                       key=lambda which: _turn(wanted[which[0]][which[1]].nbytes))
        arrays: Dict[Tuple[int, str], Any] = {}
        try:
            for identifier, key in order:
                settings, request = self.registry.get(identifier), wanted[identifier][key]
                if settings is None:
                    continue
                block = _blocks.of_account(self._budget, settings.account, request.memory, stream)
                try:
                    arrays[identifier, key] = make(request.memory, request.shape, request.dtype, self.device, stream, block)
                except RuntimeError:
                    if self.registry.get(identifier) is settings:
                        raise
                except MemoryError:
                    room.refused = request.memory
                    raise
            return {identifier: ArrayResponse({key: arrays[identifier, key] for key in requests}, chunks, length,
                                              {key: request.shape for key, request in requests.items()})
                    for identifier, requests in wanted.items() if all((identifier, key) in arrays for key in requests)}
        except BaseException:
            arrays.clear()  # the error's traceback would keep them
            raise

    def _chunked(self, requests: Requests, chunks: int, length: int) -> Requests:
        """Requests of the shapes of a chunk."""
        if chunks == 1:
            return requests
        shapes = self.compute_chunked_shapes(requests, length)
        return {key: dataclasses.replace(request, shape=shapes[key]) for key, request in requests.items()}

    def _deliver(self, group: str, got: Dict[int, ArrayResponse], chunks: int, length: int) -> None:
        """Keep the arrays of a queue, and tell all members of the group."""
        members = list(got) + [member for member in self.stream_groups.get_instances_in_group(group) if member not in got]
        known = [(self.registry[member], got.get(member)) for member in members if member in self.registry]
        for settings, response in known:
            if response is not None:
                settings.answer(response)
        _call_all(functools.partial(settings.allocation_ready_hook, response or ArrayResponse({}, chunks, length, {}))
                  for settings, response in known)
