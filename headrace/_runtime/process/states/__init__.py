"""What functions keep for each key: stores in an epoch, tables between epochs, handles that functions see."""
