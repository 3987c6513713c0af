/* What /proc/asound tells of an open device: who holds it, in which state, with what format. */
#include "device.h"

#include <stdarg.h>
#include <stdio.h>

void tell(const struct device *device, const char *name, const char *format, ...)
{
  char path[640];
  va_list arguments;
  FILE *file;

  if (is_gone(device))
    return; /* its folder may already be another's */
  snprintf(path, sizeof path, "%s/%s", device->proc, name);
  file = fopen(path, "we");
  if (!file)
    return;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

void tell_status(const struct device *device, const char *state)
{
  tell(device, "status",
       "state: %s\nowner_pid   : %d\ntrigger_time: %.9f\ntstamp      : 0.000000000\n"
       "delay       : 0\navail       : %lld\navail_max   : 0\n-----\n"
       "hw_ptr      : %lld\nappl_ptr    : %lld\n",
       state, device->stream->owner, device->stream->started_ns * 1e-9,
       (long long)available(device), (long long)device->hardware, (long long)device->application);
}
