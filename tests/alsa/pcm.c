/* The sound of a test card: an alsa-lib external I/O plugin.
 *
 * The microphone plays a file at the pace of a clock of its own, the speaker writes what it is
 * given into files, and there is a real buffer: who comes late has an overrun. The test tells it
 * through card_state.h what to offer and when to fail. The behaviour follows the kernel's:
 * an overrun when the buffer is full (not when it is more than full), POLLERR in every state that
 * cannot move sound, POLLERR|POLLNVAL once the card is gone, one opener a device, and
 * /proc/asound tells who that is.
 *
 * Positions are frames since the last prepare, as alsa-lib counts them. `long` has 64 bits here,
 * so that they never wrap.
 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static snd_pcm_sframes_t on_pointer(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  advance(device);
  return device->hardware;
}

static int on_start(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;
  struct card *card = device->card;
  struct stream *stream = device->stream;
  int64_t now;

  if (is_gone(device))
    return -ENODEV;
  follow_source(device);
  tell_status(device, "RUNNING"); /* first, because it takes longer than a frame */
  now = card_now_ns();
  if (is_capture(device)) {
    device->base = card->source_next;
    if (card->goes_on && card->room_ns) {
      /* the room went on while nobody recorded */
      device->base =
          card->room_position + (now - card->room_ns) * frames_per_ns(device) * source_step(device);
      device->base = rint(device->base); /* so that equal rates stay bit exact */
      stream->frames_lost += llrint((device->base - card->source_next) / source_step(device));
    }
  } else if (device->silent_ns) {
    stream->frames_lost += llrint((now - device->silent_ns) * frames_per_ns(device));
    device->silent_ns = 0;
  }
  device->clock = device->hardware;
  device->clock_ns = now;
  device->frozen_ns = now;
  device->running = 1;
  stream->starts++;
  stream->started_ns = now;
  return 0;
}

static int on_stop(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  if (device->running)
    advance(device);
  cut_recording(device);
  remember(device);
  device->running = 0;
  tell_status(device, "SETUP");
  return 0;
}

static int on_prepare(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;
  int error = error_of(device, FAULT_PREPARE);

  if (error)
    return error;
  if (is_gone(device))
    return -ENODEV;
  cut_recording(device);
  device->earlier += device->application;
  device->application = device->hardware = 0;
  device->clock = 0;
  device->running = 0;
  device->stream->prepares++;
  tell_status(device, "PREPARED");
  schedule(device);
  return 0;
}

static int on_pause(snd_pcm_ioplug_t *io, int enable)
{
  struct device *device = io->private_data;

  device->application = io->appl_ptr;
  advance(device);
  remember(device);
  device->running = !enable;
  device->clock_ns = card_now_ns();
  schedule(device);
  return 0;
}

/* Only for capture, which stops at once; for playback alsa-lib itself waits until it is empty. */
static int on_drain(snd_pcm_ioplug_t *io)
{
  (void)io;
  return 0;
}

static snd_pcm_sframes_t on_transfer(snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas,
                                     snd_pcm_uframes_t offset, snd_pcm_uframes_t size)
{
  struct device *device = io->private_data;
  struct stream *stream = device->stream;
  snd_pcm_uframes_t limit = stream->transfer_limit, left;
  int error;

  device->application = io->appl_ptr;
  if (is_gone(device))
    return -ENODEV;
  error = error_of(device, FAULT_TRANSFER);
  if (error)
    return error;
  if (device->cut) {
    /* alsa-lib asks for the rest: saying "not now" makes this read or write a short one */
    device->cut = 0;
    return -EAGAIN;
  }
  left = before_fault(device);
  if (size > left)
    size = left;
  if (limit > 0 && size > limit) {
    size = limit;
    device->cut = 1;
  }
  if (is_capture(device))
    capture(device, areas, offset, size);
  else if ((error = play(device, areas, offset, size)) < 0)
    return error;
  stream->transfers++;
  if (io->access == SND_PCM_ACCESS_RW_INTERLEAVED || io->access == SND_PCM_ACCESS_RW_NONINTERLEAVED)
    device->application += size;
  remember(device);
  schedule(device);
  return size;
}

static int on_poll_descriptors(snd_pcm_ioplug_t *io, struct pollfd *descriptors, unsigned space)
{
  struct device *device = io->private_data;

  if (space < 1)
    return 0;
  device->application = io->appl_ptr;
  advance(device);
  schedule(device);
  descriptors->fd = device->poller;
  descriptors->events = POLLIN | POLLERR | POLLNVAL;
  descriptors->revents = 0;
  return 1;
}

static unsigned short events_of(struct device *device)
{
  unsigned short ready = is_capture(device) ? POLLIN : POLLOUT;
  struct fault *freeze = due(device, FAULT_FREEZE);

  if (is_gone(device))
    return POLLERR | POLLNVAL;
  switch (device->io.state) {
  case SND_PCM_STATE_PREPARED:
  case SND_PCM_STATE_RUNNING:
  case SND_PCM_STATE_PAUSED:
  case SND_PCM_STATE_DRAINING:
    if (freeze)
      device->frozen_ns = card_now_ns() + (int64_t)(device->io.period_size / frames_per_ns(device));
    return ready;
  default:
    return ready | POLLERR;
  }
}

static int on_poll_events(snd_pcm_ioplug_t *io, struct pollfd *descriptors, unsigned count,
                          unsigned short *events)
{
  struct device *device = io->private_data;
  char told[512];
  int error;

  device->application = io->appl_ptr;
  device->stream->polls++;
  device->cut = 0;
  *events = 0;
  if (count != 1)
    return -EINVAL;
  while (descriptors->revents && read(device->watch, told, sizeof told) > 0)
    ;
  advance(device);
  error = error_of(device, FAULT_POLL);
  if (error)
    *events = POLLERR;
  else if (is_ready(device, card_now_ns()))
    *events = events_of(device);
  schedule(device);
  return 0;
}

static int on_hw_params(snd_pcm_ioplug_t *io, snd_pcm_hw_params_t *params)
{
  struct device *device = io->private_data;
  struct stream *stream = device->stream;
  char path[400];

  (void)params;
  if (is_gone(device))
    return -ENODEV;
  stream->format = io->format;
  stream->rate = io->rate;
  stream->channel_count = io->channels;
  stream->period = io->period_size;
  stream->buffer = io->buffer_size;
  device->avail_min = io->period_size;
  device->stop_threshold = io->buffer_size;
  tell(device, "hw_params",
       "access: %s\nformat: %s\nsubformat: STD\nchannels: %u\nrate: %u (%u/1)\n"
       "period_size: %lu\nbuffer_size: %lu\n",
       snd_pcm_access_name(io->access), snd_pcm_format_name(io->format), io->channels, io->rate,
       io->rate, io->period_size, io->buffer_size);
  if (is_capture(device) || !*device->card->speaker_path)
    return 0;
  if (device->speaker >= 0)
    close(device->speaker);
  snprintf(path, sizeof path, "%s/%06lld-%s-%u-%u.raw", device->card->speaker_path,
           (long long)stream->opens, snd_pcm_format_name(io->format), io->rate, io->channels);
  device->speaker = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0666);
  return device->speaker < 0 ? -EIO : 0;
}

static int on_hw_free(snd_pcm_ioplug_t *io)
{
  tell(io->private_data, "hw_params", "no setup\n");
  return 0;
}

static int on_sw_params(snd_pcm_ioplug_t *io, snd_pcm_sw_params_t *params)
{
  struct device *device = io->private_data;
  snd_pcm_uframes_t frames;

  if (snd_pcm_sw_params_get_avail_min(params, &frames) == 0)
    device->avail_min = frames;
  if (snd_pcm_sw_params_get_stop_threshold(params, &frames) == 0)
    device->stop_threshold = frames > LONG_MAX ? LONG_MAX : (int64_t)frames;
  return 0;
}

static void release(struct device *device)
{
  int *files[] = {&device->poller, &device->timer, &device->watch, &device->speaker, NULL}, **file;

  for (file = files; *file; file++)
    if (**file >= 0)
      close(**file);
  if (device->lock >= 0) {
    if (!is_gone(device))
      device->stream->owner = 0;
    tell(device, "status", "closed\n");
    tell(device, "hw_params", "closed\n");
    close(device->lock);
  }
  forget_source(device);
  card_close(device->card);
  free(device);
}

static int on_close(snd_pcm_ioplug_t *io)
{
  struct device *device = io->private_data;

  remember(device);
  cut_recording(device);
  device->stream->closes++;
  release(device);
  return 0;
}

static const snd_pcm_ioplug_callback_t all_callbacks = {
    .start = on_start,
    .stop = on_stop,
    .pointer = on_pointer,
    .transfer = on_transfer,
    .close = on_close,
    .hw_params = on_hw_params,
    .hw_free = on_hw_free,
    .sw_params = on_sw_params,
    .prepare = on_prepare,
    .drain = on_drain,
    .pause = on_pause,
    .poll_descriptors = on_poll_descriptors,
    .poll_revents = on_poll_events,
};

/* One opener a device: the second one is told that it is busy, as the kernel does. */
static int take(struct device *device)
{
  char path[640];

  snprintf(path, sizeof path, "%s/status", device->proc);
  device->lock = open(path, O_RDWR | O_CLOEXEC);
  if (device->lock < 0)
    return -ENODEV;
  if (flock(device->lock, LOCK_EX | LOCK_NB) < 0) {
    close(device->lock);
    device->lock = -1;
    return -EBUSY;
  }
  device->stream->owner = syscall(SYS_gettid); /* a thread, as the kernel has it */
  tell_status(device, "OPEN");
  return 0;
}

static int make_poller(struct device *device, const char *folder)
{
  struct epoll_event event = {.events = EPOLLIN};

  device->poller = epoll_create1(EPOLL_CLOEXEC);
  device->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  device->watch = card_watch(folder, IN_ATTRIB);
  if (device->poller < 0 || device->timer < 0 || device->watch < 0 ||
      epoll_ctl(device->poller, EPOLL_CTL_ADD, device->timer, &event) < 0 ||
      epoll_ctl(device->poller, EPOLL_CTL_ADD, device->watch, &event) < 0)
    return -errno;
  return 0;
}

static int open_device(snd_pcm_t **handle, const char *name, snd_pcm_stream_t direction, int mode,
                       const char *root, const char *wanted, long number)
{
  struct device *device;
  char folder[512];
  int error;
  struct card *card = card_open(root, wanted, folder, sizeof folder, &error);

  if (!card)
    return error;
  card->streams[direction].opens_tried++;
  device = calloc(1, sizeof *device);
  if (!device) {
    card_close(card);
    return -ENOMEM;
  }
  device->card = card;
  device->stream = &card->streams[direction];
  device->plugged = card->plugged;
  device->earlier = device->stream->frames;
  device->poller = device->timer = device->watch = device->speaker = device->lock = -1;
  snprintf(device->proc, sizeof device->proc, "%s/pcm%ld%c/sub0", folder, number,
           direction == SND_PCM_STREAM_CAPTURE ? 'c' : 'p');
  device->io.version = SND_PCM_IOPLUG_VERSION;
  device->io.name = card->name;
  device->io.flags = SND_PCM_IOPLUG_FLAG_MONOTONIC | SND_PCM_IOPLUG_FLAG_BOUNDARY_WA;
  device->callbacks = all_callbacks;
  if (!device->stream->can_pause)
    device->callbacks.pause = NULL;
  if (direction == SND_PCM_STREAM_PLAYBACK)
    device->callbacks.drain = NULL;
  device->io.callback = &device->callbacks;
  device->io.nonblock = (mode & SND_PCM_NONBLOCK) != 0; /* alsa-lib forgets it at open */
  device->io.private_data = device;
  error = number != 0 || !device->stream->present ? -ENOENT : error_of(device, FAULT_OPEN);
  if (error || (error = take(device)) < 0 || (error = make_poller(device, folder)) < 0 ||
      (error = snd_pcm_ioplug_create(&device->io, name, direction, mode)) < 0) {
    release(device);
    return error;
  }
  device->stream->opens++;
  if (direction == SND_PCM_STREAM_CAPTURE) {
    follow_source(device);
    load_source(device);
  }
  error = offer_everything(device);
  if (error < 0) {
    snd_pcm_ioplug_delete(&device->io);
    return error;
  }
  *handle = device->io.pcm;
  return 0;
}

SND_PCM_PLUGIN_DEFINE_FUNC(oyez_card)
{
  snd_config_iterator_t i, next;
  const char *card_root = NULL, *wanted = NULL;
  long number = 0;

  (void)root;
  snd_config_for_each(i, next, conf)
  {
    snd_config_t *entry = snd_config_iterator_entry(i);
    const char *id;

    if (snd_config_get_id(entry, &id) < 0 || !strcmp(id, "type") || !strcmp(id, "comment") ||
        !strcmp(id, "hint"))
      continue;
    if (!strcmp(id, "root"))
      snd_config_get_string(entry, &card_root);
    else if (!strcmp(id, "card"))
      snd_config_get_string(entry, &wanted);
    else if (!strcmp(id, "device"))
      snd_config_get_integer(entry, &number);
    else {
      SNDERR("oyez_card: unknown field %s", id);
      return -EINVAL;
    }
  }
  if (!card_root || !wanted) {
    SNDERR("oyez_card: root and card are needed");
    return -EINVAL;
  }
  return open_device(pcmp, name, stream, mode, card_root, wanted, number);
}

SND_PCM_PLUGIN_SYMBOL(oyez_card);
