"""`torch.utils.tensorboard`: a `SummaryWriter` that logs scalars, texts, histograms and images through the tensorboard package."""

from __future__ import annotations

import datetime
import io
import os
import socket
import time
from typing import Any

import numpy as np

try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "TensorBoard logging requires TensorBoard: install it with `pip install tensorboard`",
        name=error.name,
    ) from error

from ..reexport import expose

__all__ = ["SummaryWriter"]


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _number(value: Any) -> float:
    array = _array(value)
    if array.size != 1:
        raise AssertionError("scalar should be 0D")
    return float(array.reshape(-1)[0])


class SummaryWriter:
    """Writes events to a folder that TensorBoard watches, by default `runs/<time>_<host><comment>`."""

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self._writer = EventFileWriter(self.log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder that events are written to."""
        return self.log_dir

    def _add(self, value: Any, step: Any, wall: float | None) -> None:
        event = Event(
            wall_time=time.time() if wall is None else wall, summary=Summary(value=[value])
        )
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Log one number."""
        value = Summary.Value(tag=tag, simple_value=_number(scalar_value))
        self._add(value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log several numbers, each under the tag `main_tag/<its key>`."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log text."""
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        content = TensorProto(
            dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape
        )
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        value = Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=content)
        self._add(value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = 64,
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Log a histogram of values. ValueError if there are none."""
        array = _array(values).astype(np.float64).reshape(-1)
        if not array.size:
            raise ValueError("The input has no element.")
        counts, limits = np.histogram(array, 64 if isinstance(bins, str) else bins)
        histogram = HistogramProto(
            min=array.min(), max=array.max(), num=array.size, sum=array.sum(), sum_squares=array @ array,
            bucket_limit=limits[1:].tolist(), bucket=counts.tolist(),
        )  # fmt: skip
        self._add(Summary.Value(tag=tag, histo=histogram), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image of uint8 values or of numbers in [0, 1]; `dataformats` names its dimensions in order."""
        from PIL import Image

        array = _array(img_tensor)
        if array.dtype != np.uint8:
            array = np.clip(array * 255.0, 0, 255).astype(np.uint8)
        order = [dataformats.index(letter) for letter in "HWC" if letter in dataformats]
        array = array.transpose(order)
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[..., 0]
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, format="PNG")
        image = Summary.Image(
            height=array.shape[0], width=array.shape[1], colorspace=1 if array.ndim == 2 else array.shape[2],
            encoded_image_string=buffer.getvalue(),
        )  # fmt: skip
        self._add(Summary.Value(tag=tag, image=image), global_step, walltime)

    def flush(self) -> None:
        """Write the events queued so far."""
        self._writer.flush()

    def close(self) -> None:
        """Write the events queued so far and close the file."""
        self._writer.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


expose(globals(), {"writer": "SummaryWriter"})
